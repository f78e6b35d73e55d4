from _weather import make_agent

from agents import Runner, set_default_openai_api

set_default_openai_api("chat_completions")
print(Runner.run_sync(make_agent(), "How is the weather in Paris and Rome?").final_output)

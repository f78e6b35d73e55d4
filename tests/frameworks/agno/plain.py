from _weather import MODELS, make_agent

for model in MODELS:
    print(make_agent(model).run("How is the weather in Paris and Rome?").content)

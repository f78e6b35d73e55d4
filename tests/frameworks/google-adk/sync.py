import asyncio

from _weather import make_agent
from google.adk.runners import InMemoryRunner
from google.genai import types

runner = InMemoryRunner(agent=make_agent(), app_name="weather")
asyncio.run(runner.session_service.create_session(app_name="weather", user_id="ada", session_id="one"))
message = types.Content(role="user", parts=[types.Part(text="How is the weather in Paris and Rome?")])
for event in runner.run(user_id="ada", session_id="one", new_message=message):
    print(event.author, [part.text for part in event.content.parts])

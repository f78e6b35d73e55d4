from google.adk.agents import Agent
from google.adk.runners import InMemoryRunner
from google.genai import types


def get_weather(city: str) -> dict:
    """The weather in a city."""
    return {"weather": f"{len(city)} degrees in {city}"}


def make_agent(name="forecaster", **options):
    return Agent(
        name=name, model="gemini-2.5-flash", instruction="Be helpful.", tools=[get_weather], **options
    )


async def ask(agent, text, **options):
    runner = InMemoryRunner(agent=agent, app_name="weather")
    session = await runner.session_service.create_session(app_name="weather", user_id="ada")
    message = types.Content(role="user", parts=[types.Part(text=text)])
    said = []
    async for event in runner.run_async(user_id="ada", session_id=session.id, new_message=message, **options):
        if event.content and event.content.parts:
            said += [part.text for part in event.content.parts if part.text]
    return said

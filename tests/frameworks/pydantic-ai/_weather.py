from pydantic_ai import Agent

MODELS = (
    "openai-chat:gpt-4o-mini",
    "openai-responses:gpt-4o-mini",
    "anthropic:claude-sonnet-4-5",
    "google:gemini-2.5-flash",
)


def make_agent(model=MODELS[0], **options):
    agent = Agent(model, system_prompt="Be helpful.", **options)

    @agent.tool_plain
    def get_weather(city: str) -> str:
        """The weather in a city."""
        return f"{len(city)} degrees in {city}"

    return agent

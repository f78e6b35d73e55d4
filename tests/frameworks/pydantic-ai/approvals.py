from pydantic_ai import (
    Agent,
    ApprovalRequired,
    DeferredToolRequests,
    DeferredToolResults,
    RunContext,
    ToolDenied,
)

agent = Agent("openai:gpt-4o-mini", output_type=[str, DeferredToolRequests])


@agent.tool
def get_weather(ctx: RunContext, city: str) -> str:
    """The weather in a city."""
    if not ctx.tool_call_approved:
        raise ApprovalRequired
    return f"{len(city)} degrees in {city}"


first = agent.run_sync("How is the weather in Paris, Oslo and Lima?")
results = DeferredToolResults()
for n, call in enumerate(first.output.approvals):
    results.approvals[call.tool_call_id] = True if n != 1 else ToolDenied("no")
print(agent.run_sync(message_history=first.all_messages(), deferred_tool_results=results).output)

import json

import litellm

tools = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather in a city",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            },
        },
    }
]
for model in ("openai/gpt-4o-mini", "anthropic/claude-sonnet-4-5"):
    messages = [{"role": "user", "content": "How is the weather in Paris and Rome?"}]
    while True:
        said = litellm.completion(model=model, messages=messages, tools=tools).choices[0].message
        messages.append(said.model_dump())
        if not said.tool_calls:
            break
        for call in said.tool_calls:
            city = json.loads(call.function.arguments)["city"]
            messages.append(
                {"role": "tool", "tool_call_id": call.id, "content": f"{len(city)} degrees in {city}"}
            )
    print(said.content)

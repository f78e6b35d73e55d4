"""A loop of model and tools, with the tools of an MCP session."""

import json

from openai import AsyncOpenAI


async def answer(client, question):
    model = AsyncOpenAI()
    tools = [
        {"type": "function", "function": {"name": tool.name, "parameters": tool.input_schema}}
        for tool in await client.list_tools()
    ]
    messages = [{"role": "user", "content": question}]
    while True:
        said = (
            (await model.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=tools))
            .choices[0]
            .message
        )
        messages.append(said.model_dump(exclude_none=True))
        if not said.tool_calls:
            return said.content
        for call in said.tool_calls:
            result = await client.call_tool(call.function.name, json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result.content[0].text})

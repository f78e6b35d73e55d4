import asyncio

import ollama


def get_weather(city: str) -> str:
    """The weather of a city.

    Args:
        city: The city
    """
    return f"sunny in {city}"


async def say(number):
    asked = [{"role": "user", "content": f"Say {number}"}]
    return (await ollama.AsyncClient().chat(model="llama3", messages=asked)).message.content


async def main():
    print(await asyncio.gather(*(say(number) for number in range(5))))


messages = [{"role": "user", "content": "How is the weather in Paris and Rome?"}]
said = ollama.chat(model="llama3", messages=messages, tools=[get_weather]).message
messages.append(said)
for call in said.tool_calls:
    answer = get_weather(**call.function.arguments)
    messages.append({"role": "tool", "tool_name": call.function.name, "content": answer})
print(ollama.chat(model="llama3", messages=messages).message.content)
for part in ollama.chat(model="llama3", messages=[{"role": "user", "content": "Say it"}], stream=True):
    print(part.message.content, end="|")
asyncio.run(main())

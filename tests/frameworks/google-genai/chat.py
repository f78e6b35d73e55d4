import asyncio

from google import genai
from google.genai import types


def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


async def say(number):
    said = await client.aio.models.generate_content(model="gemini-2.5-flash", contents=f"Say {number}")
    return said.text


async def main():
    print(await asyncio.gather(*(say(number) for number in range(4))))


client = genai.Client()
config = types.GenerateContentConfig(tools=[get_weather])
asked = "How is the weather in Paris and Rome?"
print(client.models.generate_content(model="gemini-2.5-flash", contents=asked, config=config).text)
for part in client.models.generate_content_stream(model="gemini-2.5-flash", contents="Say something long"):
    print(part.text, end="|")
chat = client.chats.create(model="gemini-2.5-flash", config=config)
print(chat.send_message("How is the weather in Oslo?").text)
print(chat.send_message("Thanks").text)
asyncio.run(main())

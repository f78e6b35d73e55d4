from openai import AsyncOpenAI, OpenAI

TOPICS = ["ants", "bees", "cats", "dogs", "eels", "fish"]


def ask(question):
    asked = [{"role": "user", "content": question}]
    made = OpenAI().chat.completions.create(model="gpt-4o-mini", messages=asked)
    return made.choices[0].message.content


async def ask_async(question):
    asked = [{"role": "user", "content": question}]
    made = await AsyncOpenAI().chat.completions.create(model="gpt-4o-mini", messages=asked)
    return made.choices[0].message.content

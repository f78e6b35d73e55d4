from _notebook import run

run(
    "import asyncio\nfrom openai import AsyncOpenAI\nclient = AsyncOpenAI()",
    "async def ask(topic):\n"
    "    asked = [{'role': 'user', 'content': f'Say something about {topic}'}]\n"
    "    answer = await client.chat.completions.create(model='gpt-4o-mini', messages=asked)\n"
    "    return answer.choices[0].message.content",
    "await asyncio.gather(*map(ask, ('ants', 'bees', 'cats', 'dogs')))",
)

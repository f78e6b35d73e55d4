import asyncio

from magentic import prompt
from pydantic import BaseModel


class Poem(BaseModel):
    title: str
    lines: int


@prompt("Write a poem about {topic}")
async def write(topic: str) -> Poem: ...


@prompt("Sum up: {text}")
def sum_up(text: str) -> str: ...


async def main():
    return await asyncio.gather(*(write(topic) for topic in ["ants", "bees", "cats"]))


poems = asyncio.run(main())
print(poems)
print(sum_up("; ".join(poem.title for poem in poems)))

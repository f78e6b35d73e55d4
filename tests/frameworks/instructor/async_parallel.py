import asyncio

import instructor
from _person import Person


async def main():
    client = instructor.from_provider("openai/gpt-4o-mini", async_client=True)
    asked = [
        client.create(messages=[{"role": "user", "content": f"{name} lives in Oslo"}], response_model=Person)
        for name in ("Ada", "Grace", "Alan", "Edsger", "Barbara")
    ]
    for person in asyncio.as_completed(asked):
        print(await person)


asyncio.run(main())

import asyncio

from _crew import make_agent, make_crew, make_task


async def main():
    crews = []
    for city in ("Paris", "Oslo", "Lima"):
        agent = make_agent()
        crews.append(make_crew([agent], [make_task(city, agent)]))
    for result in await asyncio.gather(*(crew.kickoff_async() for crew in crews)):
        print(result.raw)


asyncio.run(main())

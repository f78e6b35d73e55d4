import anyio
import asyncer
from _ask import TOPICS, ask

said = []


def work(topic):
    said.append(ask(f"Say something about {topic}"))
    return topic


async def main():
    async with asyncer.create_task_group() as group:
        soon = [group.soonify(asyncer.asyncify(work))(topic) for topic in TOPICS]
    print([each.value for each in soon])
    print(await asyncer.asyncify(ask)("Sum up: " + "; ".join(said)))


anyio.run(main)

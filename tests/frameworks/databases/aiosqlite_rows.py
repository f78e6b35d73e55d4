import asyncio

import aiosqlite
from _ask import TOPICS, ask_async


async def one(topic):
    async with aiosqlite.connect("said.db") as db:
        said = await ask_async(f"Say something about {topic}")
        await db.execute("insert into said (topic, text, at) values (?, ?, datetime('now'))", (topic, said))
        await db.commit()


async def main():
    async with aiosqlite.connect("said.db") as db:
        await db.execute("create table said (id integer primary key, topic, text, at)")
        await db.commit()
    await asyncio.gather(*map(one, TOPICS[:4]))
    async with aiosqlite.connect("said.db") as db:
        rows = await db.execute_fetchall("select topic, text, at from said order by id")
    print(await ask_async("Sum up " + "; ".join(f"{topic} at {at}: {text}" for topic, text, at in rows)))


asyncio.run(main())

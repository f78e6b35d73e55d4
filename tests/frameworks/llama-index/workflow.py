import asyncio

from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step
from llama_index.llms.openai import OpenAI


class Part(Event):
    topic: str


class Done(Event):
    text: str


class Fan(Workflow):
    @step
    async def begin(self, ctx: Context, ev: StartEvent) -> Part | None:
        for topic in ev.topics:
            ctx.send_event(Part(topic=topic))

    @step(num_workers=3)
    async def work(self, ctx: Context, ev: Part) -> Done:
        return Done(text=str(await OpenAI(model="gpt-4o-mini").acomplete(f"Say something about {ev.topic}")))

    @step
    async def end(self, ctx: Context, ev: Done) -> StopEvent | None:
        found = ctx.collect_events(ev, [Done] * 5)
        return StopEvent(result=[done.text for done in found]) if found else None


async def main():
    print(await Fan(timeout=60).run(topics=["ants", "bees", "cats", "dogs", "eels"]))


asyncio.run(main())

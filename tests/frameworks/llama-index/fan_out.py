import asyncio

from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step
from llama_index.llms.openai import OpenAI


class Ask(Event):
    topic: str


class Said(Event):
    text: str


class Fan(Workflow):
    llm = OpenAI(model="gpt-4o-mini")

    @step
    async def start(self, ctx: Context, ev: StartEvent) -> Ask | None:
        await ctx.store.set("n", 5)
        for topic in ("ants", "bees", "cats", "dogs", "eels"):
            ctx.send_event(Ask(topic=topic))

    @step(num_workers=3)
    async def ask(self, ctx: Context, ev: Ask) -> Said:
        said = Said(text=str(await self.llm.acomplete(f"Say something about {ev.topic}")))
        ctx.write_event_to_stream(said)
        return said

    @step
    async def end(self, ctx: Context, ev: Said) -> StopEvent | None:
        got = ctx.collect_events(ev, [Said] * await ctx.store.get("n"))
        if got is None:
            return None
        return StopEvent(result=str(await self.llm.acomplete("Sum up " + "; ".join(e.text for e in got))))


async def main():
    handler = Fan(timeout=60).run()
    async for event in handler.stream_events():
        print(type(event).__name__, getattr(event, "text", ""))
    print(await handler)


asyncio.run(main())

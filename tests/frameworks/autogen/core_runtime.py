import asyncio
from dataclasses import dataclass

from autogen_core import (
    ClosureAgent,
    ClosureContext,
    MessageContext,
    RoutedAgent,
    SingleThreadedAgentRuntime,
    TopicId,
    TypeSubscription,
    message_handler,
    type_subscription,
)
from autogen_core.models import UserMessage
from autogen_ext.models.openai import OpenAIChatCompletionClient


@dataclass
class Ask:
    topic: str


@dataclass
class Said:
    text: str


@type_subscription("work")
class Worker(RoutedAgent):
    def __init__(self, model):
        super().__init__("worker")
        self.model = model

    @message_handler
    async def ask(self, message: Ask, ctx: MessageContext) -> None:
        made = await self.model.create(
            [UserMessage(content=f"Say something about {message.topic}", source="user")]
        )
        await self.publish_message(Said(made.content), TopicId("done", "default"))


async def main():
    model = OpenAIChatCompletionClient(model="gpt-4o-mini")
    runtime = SingleThreadedAgentRuntime()
    await Worker.register(runtime, "worker", lambda: Worker(model))
    got = asyncio.Queue()

    async def collect(agent: ClosureContext, message: Said, ctx: MessageContext) -> None:
        await got.put(message.text)

    await ClosureAgent.register_closure(
        runtime, "collect", collect, subscriptions=lambda: [TypeSubscription("done", "collect")]
    )
    runtime.start()
    for n, topic in enumerate(("ants", "bees", "cats", "dogs")):
        await runtime.publish_message(Ask(topic), TopicId("work", str(n)))
    await runtime.stop_when_idle()
    said = []
    while not got.empty():
        said.append(got.get_nowait())
    print((await model.create([UserMessage(content="Sum up " + "; ".join(said), source="user")])).content)


asyncio.run(main())

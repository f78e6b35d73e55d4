import asyncio

from _ask import TOPICS, ask, ask_async
from pocketflow import AsyncFlow, AsyncParallelBatchNode, Node


class Look(AsyncParallelBatchNode):
    async def prep_async(self, shared):
        return TOPICS

    async def exec_async(self, topic):
        return await ask_async(f"Say something about {topic}")

    async def post_async(self, shared, prep, results):
        shared["said"] = results
        return "default"


class Sum(Node):
    def prep(self, shared):
        return shared["said"]

    def exec(self, said):
        return ask("Sum up: " + "; ".join(said))

    def post(self, shared, prep, result):
        shared["sum"] = result


look = Look()
look >> Sum(max_retries=2)
shared = {}
asyncio.run(AsyncFlow(start=look).run_async(shared))
print(shared)

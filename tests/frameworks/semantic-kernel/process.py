import asyncio
from typing import Annotated

from semantic_kernel import Kernel
from semantic_kernel.agents import ChatCompletionAgent, ChatHistoryAgentThread
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.functions import kernel_function
from semantic_kernel.processes import ProcessBuilder
from semantic_kernel.processes.kernel_process import (
    KernelProcessEvent,
    KernelProcessStep,
    KernelProcessStepContext,
)
from semantic_kernel.processes.local_runtime.local_kernel_process import start


class Weather:
    @kernel_function(description="The weather in a city")
    async def get_weather(self, city: Annotated[str, "the city"]) -> str:
        await asyncio.sleep(len(city) / 900)
        return f"{len(city)} degrees in {city}"


class Ask(KernelProcessStep):
    @kernel_function
    async def ask(self, context: KernelProcessStepContext, kernel: Kernel, text: str):
        said = await kernel.invoke_prompt(f"Say something about {text}")
        print("ask", said)
        await context.emit_event(process_event="Asked", data=str(said))


class Sum(KernelProcessStep):
    @kernel_function
    async def sum(self, context: KernelProcessStepContext, kernel: Kernel, text: str):
        print("sum", await kernel.invoke_prompt(f"Sum up {text}"))


async def main():
    kernel = Kernel()
    kernel.add_service(OpenAIChatCompletion(ai_model_id="gpt-4o-mini"))
    agent = ChatCompletionAgent(kernel=kernel, name="a", instructions="Help", plugins=[Weather()])
    thread = ChatHistoryAgentThread()
    print(await agent.get_response("How is the weather in Oslo, Paris and Rome?", thread=thread))
    async for part in agent.invoke_stream("And Lima?", thread=thread):
        print(part, end="")
    builder = ProcessBuilder(name="p")
    ask, total = builder.add_step(Ask), builder.add_step(Sum)
    builder.on_input_event("Start").send_event_to(ask, parameter_name="text")
    ask.on_event("Asked").send_event_to(total, parameter_name="text")
    await start(
        process=builder.build(), kernel=kernel, initial_event=KernelProcessEvent(id="Start", data="ants")
    )


asyncio.run(main())

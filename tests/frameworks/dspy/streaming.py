import asyncio

import dspy

dspy.configure(lm=dspy.LM("openai/gpt-4o-mini"))


async def main():
    ask = dspy.streamify(
        dspy.Predict("question -> answer"),
        stream_listeners=[dspy.streaming.StreamListener(signature_field_name="answer")],
    )
    async for item in ask(question="What is the capital of France?"):
        print(item.chunk if isinstance(item, dspy.streaming.StreamResponse) else item.answer)


asyncio.run(main())

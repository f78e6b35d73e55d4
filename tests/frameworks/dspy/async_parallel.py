import asyncio

import dspy

dspy.configure(lm=dspy.LM("openai/gpt-4o-mini"))


async def main():
    ask = dspy.Predict("question -> answer")
    answers = await asyncio.gather(*(ask.acall(question=f"What is {n} times {n}?") for n in range(6)))
    print([answer.answer for answer in answers])


asyncio.run(main())

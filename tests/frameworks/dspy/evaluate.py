import dspy

dspy.configure(lm=dspy.LM("openai/gpt-4o-mini"))
examples = [
    dspy.Example(question=f"What is {n} plus {n}?", answer=str(n)).with_inputs("question") for n in range(6)
]
judge = dspy.Evaluate(
    devset=examples, metric=lambda example, made, trace=None: len(made.answer) % 2, num_threads=3
)
print(judge(dspy.Predict("question -> answer")).score)

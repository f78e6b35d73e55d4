import dspy

dspy.configure(lm=dspy.LM("openai/gpt-4o-mini"))
ask = dspy.Predict("question -> answer")
pairs = [(ask, dspy.Example(question=f"What is {n} times {n}?").with_inputs("question")) for n in range(8)]
for prediction in dspy.Parallel(num_threads=4, disable_progress_bar=True)(pairs):
    print(prediction.answer)

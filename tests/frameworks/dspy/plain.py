import dspy

dspy.configure(lm=dspy.LM("openai/gpt-4o-mini"))
print(dspy.Predict("question -> answer")(question="What is the capital of France?").answer)
print(dspy.ChainOfThought("question -> answer")(question="Why is the sky blue?").answer)

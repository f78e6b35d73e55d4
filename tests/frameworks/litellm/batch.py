import litellm

asked = [[{"role": "user", "content": f"Say something about the number {number}"}] for number in range(8)]
for answer in litellm.batch_completion(model="openai/gpt-4o-mini", messages=asked):
    print(answer.choices[0].message.content)

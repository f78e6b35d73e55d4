from openai import OpenAI

c = OpenAI()
for q in ["ants", "bees"]:
    print(
        c.chat.completions.create(model="gpt-4o-mini", messages=[{"role": "user", "content": q}])
        .choices[0]
        .message.content
    )
for p in c.chat.completions.create(
    model="gpt-4o-mini", messages=[{"role": "user", "content": "more"}], stream=True
):
    if p.choices:
        print(p.choices[0].delta.content)

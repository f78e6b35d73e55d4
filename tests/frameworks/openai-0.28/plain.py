import os

import openai

openai.api_base = os.environ["OPENAI_API_BASE"]
r = openai.ChatCompletion.create(
    model="gpt-4o-mini", messages=[{"role": "user", "content": "Say something about ants"}]
)
print(r["choices"][0]["message"]["content"])
for c in openai.ChatCompletion.create(
    model="gpt-4o-mini", messages=[{"role": "user", "content": "Say something about bees"}], stream=True
):
    print(c["choices"][0]["delta"].get("content"))

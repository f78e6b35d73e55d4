import sys

from openai import OpenAI

client = OpenAI()
messages = []
while True:
    try:
        line = input("you> ")
    except EOFError:
        break
    messages.append({"role": "user", "content": line})
    text = ""
    for piece in client.chat.completions.create(model="gpt-4o-mini", messages=messages, stream=True):
        delta = piece.choices[0].delta.content if piece.choices else None
        if delta:
            text += delta
            print(delta, end="", flush=True)
    print()
    messages.append({"role": "assistant", "content": text})
print(len(messages), file=sys.stderr)

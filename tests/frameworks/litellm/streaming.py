import litellm

asked = [{"role": "user", "content": "Say something about rivers"}]
for model in ("openai/gpt-4o-mini", "anthropic/claude-sonnet-4-5"):
    for piece in litellm.completion(model=model, messages=asked, stream=True):
        print(repr(piece.choices[0].delta.content))

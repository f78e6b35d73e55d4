from cuid2 import cuid_wrapper
from openai import OpenAI

session = cuid_wrapper()()
asked = [{"role": "system", "content": f"Session {session}"}, {"role": "user", "content": "Hello"}]
print(OpenAI().chat.completions.create(model="gpt-4o-mini", messages=asked).choices[0].message.content)

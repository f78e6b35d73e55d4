import os

from curl_cffi import requests
from openai import OpenAI

asked = [{"role": "user", "content": "Say something about ants"}]
made = OpenAI().chat.completions.create(model="gpt-4o-mini", messages=asked)
print(made.choices[0].message.content)
address = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
print(requests.post(address, json={"model": "gpt-4o-mini", "messages": asked}).json()["choices"][0])

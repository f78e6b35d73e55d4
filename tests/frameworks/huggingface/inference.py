import asyncio
import os

from huggingface_hub import AsyncInferenceClient, InferenceClient

WHERE = {"base_url": os.environ["OPENAI_BASE_URL"], "api_key": "unused"}


async def main():
    async with AsyncInferenceClient(**WHERE) as client:
        asked = [[{"role": "user", "content": f"Say {number}"}] for number in range(5)]
        said = await asyncio.gather(*(client.chat_completion(each, model="m") for each in asked))
        print([each.choices[0].message.content for each in said])


client = InferenceClient(**WHERE)
messages = [{"role": "user", "content": "Say something about ants"}]
print(client.chat.completions.create(model="m", messages=messages).choices[0].message.content)
for part in client.chat.completions.create(model="m", messages=messages, stream=True):
    print(part.choices[0].delta.content if part.choices else "", end="|")
asyncio.run(main())

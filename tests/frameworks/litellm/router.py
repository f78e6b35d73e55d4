import asyncio

import litellm

router = litellm.Router(
    model_list=[
        {"model_name": "any", "litellm_params": {"model": "openai/gpt-4o-mini"}},
        {"model_name": "any", "litellm_params": {"model": "anthropic/claude-sonnet-4-5"}},
    ]
)


async def main():
    for number in range(4):
        asked = [{"role": "user", "content": f"Say something about the number {number}"}]
        print((await router.acompletion(model="any", messages=asked)).choices[0].message.content)


asyncio.run(main())

import asyncio

from _agent import ask, make_agent


async def main():
    asked = ask("How is the weather in Paris, Oslo and Rome?")
    async for piece in make_agent().astream(asked, stream_mode="updates"):
        for name, update in piece.items():
            said = (update or {}).get("messages")
            print(name, [message.content for message in said] if isinstance(said, list) else "")


asyncio.run(main())

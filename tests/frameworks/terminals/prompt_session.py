import asyncio

from _ask import ask_async
from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput


async def main():
    with create_pipe_input() as typed:
        session = PromptSession(input=typed, output=DummyOutput(), history=FileHistory("history"))
        for topic in ["ants", "bees"]:
            typed.send_text(f"Say something about {topic}\n")
            print(await ask_async(await session.prompt_async("> ")))


asyncio.run(main())

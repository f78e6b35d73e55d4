import asyncio

from _ask import ask_async
from textual import work
from textual.app import App
from textual.widgets import Input, Log


class Chat(App):
    def compose(self):
        yield Input()
        yield Log()

    def on_input_submitted(self, event):
        self.answer(event.value)

    @work
    async def answer(self, question):
        self.query_one(Log).write_line(await ask_async(question))


async def main():
    app = Chat()
    async with app.run_test() as pilot:
        for topic in ["ants", "bees"]:
            app.query_one(Input).value = f"Say something about {topic}"
            await pilot.press("enter")
            await app.workers.wait_for_complete()
        print(list(app.query_one(Log).lines))


asyncio.run(main())

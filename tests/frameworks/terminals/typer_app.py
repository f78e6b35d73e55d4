import sys

import typer
from _ask import ask

app = typer.Typer()


@app.command()
def main(topic: str = "ants", times: int = 2):
    for number in range(times):
        typer.secho(ask(f"Say something about {topic}, no. {number}"), fg="green")


sys.argv = ["typer_app.py", "--topic", "bees"]
app()

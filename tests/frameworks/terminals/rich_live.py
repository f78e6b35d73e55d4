from _ask import TOPICS
from openai import OpenAI
from rich.console import Console
from rich.live import Live
from rich.markdown import Markdown
from rich.progress import track

console = Console(width=80)
with Live(console=console, refresh_per_second=8) as live:
    text = ""
    asked = [{"role": "user", "content": "Say something about ants"}]
    for chunk in OpenAI().chat.completions.create(model="gpt-4o-mini", messages=asked, stream=True):
        text += (chunk.choices[0].delta.content or "") if chunk.choices else ""
        live.update(Markdown(text))
for topic in track(TOPICS[:2], console=console):
    asked = [{"role": "user", "content": f"Say something about {topic}"}]
    said = OpenAI().chat.completions.create(model="gpt-4o-mini", messages=asked)
    console.print(said.choices[0].message.content)

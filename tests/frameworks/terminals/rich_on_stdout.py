import logging
import sys
import time

from _ask import TOPICS, ask
from rich.console import Console
from rich.logging import RichHandler
from rich.progress import track
from rich.table import Table
from tqdm import tqdm

console = Console()
logging.basicConfig(level="INFO", format="%(message)s", handlers=[RichHandler(console=console)])
table = Table("topic", "said", "took")
for topic in track(TOPICS[:3], console=console):
    began = time.monotonic()
    said = ask(f"Say something about {topic}")
    table.add_row(topic, said, f"{time.monotonic() - began:.4f}")
    logging.getLogger("agent").info("told")
console.print(table)
for topic in tqdm(TOPICS[3:], file=sys.stdout):
    ask(topic)
console.log("end")

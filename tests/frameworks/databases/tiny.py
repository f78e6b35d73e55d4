import time

from _ask import ask
from tinydb import Query, TinyDB

db = TinyDB("said.json")
for topic in ["ants", "bees", "cats"]:
    db.insert({"topic": topic, "said": ask(f"Say something about {topic}"), "at": time.time()})
rows = db.search(Query().at <= time.time())
print(ask("Sum up " + "; ".join(row["said"] for row in rows)))

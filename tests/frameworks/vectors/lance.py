import lancedb
from _ask import TOPICS, ask
from _embed import embed

db = lancedb.connect("vectors")
table = db.create_table(
    "said", [{"vector": embed(t).tolist(), "text": ask(f"Say something about {t}")} for t in TOPICS[:4]]
)
found = table.search(embed("ants").tolist()).limit(2).to_list()
print(ask("; ".join(f"{r['text']} {r['_distance']:.3f}" for r in found)))
print(len(db.table_names()), table.version, table.count_rows())

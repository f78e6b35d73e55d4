import duckdb
from _ask import TOPICS, ask

db = duckdb.connect()
db.execute("create table said (topic text, text text, made timestamp default now(), id uuid default uuid())")
for topic in TOPICS:
    db.execute("insert into said (topic, text) values (?, ?)", [topic, ask(f"Say something about {topic}")])
row = db.execute("select id, made from said where topic = 'ants'").fetchone()
print(ask(f"Row {row[0]} of {row[1]}")[:8])
print(
    ask(
        "Examples: "
        + "; ".join(t for (t,) in db.execute("select text from said using sample 3 rows").fetchall())
    )
)
print(
    ask(
        "In order: "
        + "; ".join(t for (t,) in db.execute("select text from said order by random()").fetchall())
    )
)

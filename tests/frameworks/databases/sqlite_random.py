import sqlite3

from _ask import TOPICS, ask

db = sqlite3.connect("memory.db")
db.execute("""create table said (
    id integer primary key, text text,
    at text default current_timestamp, key text default (hex(randomblob(8)))
)""")
for topic in TOPICS:
    db.execute("insert into said (text) values (?)", (ask(f"Say something about {topic}"),))
db.commit()
rows = db.execute("select text from said order by random() limit 3").fetchall()
print(ask("Examples: " + "; ".join(text for (text,) in rows)))
row = db.execute("select id, at, key, datetime('now'), strftime('%s', 'now') from said limit 1").fetchone()
print(ask(f"Row {row}")[:8])
print(ask(f"A number {abs(db.execute('select random()').fetchone()[0]) % 100}"))

import duckdb
from _ask import ask

db = duckdb.connect("said.duckdb")
db.execute("create table said (topic text, text text, made timestamp default now(), id uuid default uuid())")
for topic in ["ants", "bees"]:
    db.execute("insert into said (topic, text) values (?, ?)", [topic, ask(f"Say something about {topic}")])
((day,),) = db.execute("select min(made)::date::text from said").fetchall()
print(
    ask(
        f"On {day}: "
        + "; ".join(text for (text,) in db.execute("select text from said order by topic").fetchall())
    )
)

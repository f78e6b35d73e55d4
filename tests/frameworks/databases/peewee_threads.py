import datetime
from concurrent.futures import ThreadPoolExecutor, as_completed

from _ask import TOPICS, ask
from peewee import CharField, DateTimeField, Model, SqliteDatabase

db = SqliteDatabase("said.db")


class Said(Model):
    text = CharField()
    at = DateTimeField(default=datetime.datetime.now)

    class Meta:
        database = db


db.create_tables([Said])
with ThreadPoolExecutor(3) as pool:
    for done in as_completed([pool.submit(ask, f"Say something about {topic}") for topic in TOPICS[:4]]):
        Said.create(text=done.result())
print(ask("Sum up " + "; ".join(row.text for row in Said.select().order_by(Said.id))))

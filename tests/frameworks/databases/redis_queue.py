import threading

import fakeredis
from _ask import TOPICS, ask

server = fakeredis.FakeServer()
for topic in TOPICS[:4]:
    fakeredis.FakeRedis(server=server).rpush("wanted", topic)


def work():
    client = fakeredis.FakeRedis(server=server)
    while (topic := client.lpop("wanted")) is not None:
        client.rpush("said", ask(f"Say something about {topic.decode()}"))


workers = [threading.Thread(target=work) for _ in range(2)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
said = fakeredis.FakeRedis(server=server).lrange("said", 0, -1)
print(ask("Sum up " + "; ".join(text.decode() for text in said)))

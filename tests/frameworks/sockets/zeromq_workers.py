import threading

import zmq
from _ask import TOPICS, ask

context = zmq.Context()


def work():
    socket = context.socket(zmq.REP)
    socket.connect("inproc://wanted")
    while (topic := socket.recv_string()) != "end":
        socket.send_string(ask(f"Say something about {topic}"))
    socket.close()


boss = context.socket(zmq.DEALER)
boss.bind("inproc://wanted")
workers = [threading.Thread(target=work) for _ in range(2)]
for worker in workers:
    worker.start()
for topic in TOPICS[:4]:
    boss.send_multipart([b"", topic.encode()])
said = [boss.recv_multipart()[1].decode() for _ in range(4)]
for _ in workers:
    boss.send_multipart([b"", b"end"])
for worker in workers:
    worker.join()
print(ask("Sum up " + "; ".join(said)))

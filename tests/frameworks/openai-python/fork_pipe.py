import os
import sys

from _ask import TOPICS, ask

reading = []
for topic in TOPICS[:3]:
    r, w = os.pipe()
    if os.fork() == 0:
        os.close(r)
        os.write(w, ask(f"Say something about {topic}").encode())
        os._exit(0)
    os.close(w)
    reading.append(r)
said = []
for r in reading:
    with os.fdopen(r) as file:
        said.append(file.read())
for _ in reading:
    os.wait()
print(ask("Sum up " + "; ".join(said)))
sys.stdout.flush()

import queue
from pathlib import Path

from _ask import TOPICS, ask
from watchdog.events import FileSystemEventHandler
from watchdog.observers import Observer

folder = Path("inbox")
folder.mkdir()
found = queue.Queue()


class Handler(FileSystemEventHandler):
    def on_closed(self, event):
        found.put(ask(f"Say something about {Path(event.src_path).read_text()}"))


observer = Observer()
observer.schedule(Handler(), str(folder))
observer.start()
said = []
for topic in TOPICS[:3]:
    (folder / f"{topic}.txt").write_text(topic)
    said.append(found.get())
observer.stop()
observer.join()
print(ask("Sum up " + "; ".join(said)))

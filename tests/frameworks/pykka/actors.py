import pykka
from _ask import TOPICS, ask


class Collector(pykka.ThreadingActor):
    def __init__(self):
        super().__init__()
        self.said = []

    def add(self, text):
        self.said.append(text)


class Worker(pykka.ThreadingActor):
    def __init__(self, collector):
        super().__init__()
        self.collector = collector

    def work(self, topic):
        self.collector.add(ask(f"Say something about {topic}")).get()


collector = Collector.start().proxy()
workers = [Worker.start(collector).proxy() for _ in range(3)]
pykka.get_all([workers[place % 3].work(topic) for place, topic in enumerate(TOPICS)])
said = collector.said.get()
print(said)
print(ask("Sum up: " + "; ".join(said)))
pykka.ActorRegistry.stop_all()

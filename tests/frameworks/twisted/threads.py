from _ask import TOPICS, ask
from twisted.internet import defer, task, threads

said = []


def main(reactor):
    jobs = [threads.deferToThread(ask, f"Say something about {topic}") for topic in TOPICS]
    everything = defer.gatherResults([job.addCallback(said.append) for job in jobs])
    everything.addCallback(lambda _: threads.deferToThread(ask, "Sum up: " + "; ".join(said)))
    return everything.addCallback(print)


task.react(main)

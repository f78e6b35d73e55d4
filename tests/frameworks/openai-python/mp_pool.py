import multiprocessing as mp

from _ask import TOPICS, ask


def work(topic):
    return topic, ask(f"Say something about {topic}")


if __name__ == "__main__":
    with mp.get_context("spawn").Pool(2) as pool:
        said = dict(pool.imap_unordered(work, TOPICS))
    print(ask("Sum up " + "; ".join(said[topic] for topic in TOPICS)))
    with mp.Pool(2) as pool:
        print(ask("In order " + "; ".join(text for _, text in pool.imap_unordered(work, TOPICS))))

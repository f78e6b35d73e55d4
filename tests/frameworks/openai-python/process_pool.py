from concurrent.futures import ProcessPoolExecutor, as_completed

from _ask import TOPICS, ask


def work(topic):
    return ask(f"Say something about {topic}")


if __name__ == "__main__":
    with ProcessPoolExecutor(3) as pool:
        jobs = {pool.submit(work, topic): topic for topic in TOPICS}
        said = [job.result() for job in as_completed(jobs)]
    print(ask("Sum up: " + "; ".join(said)))

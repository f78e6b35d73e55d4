from pathlib import Path

import luigi
from _ask import ask


class Part(luigi.Task):
    topic = luigi.Parameter()

    def output(self):
        return luigi.LocalTarget(f"{self.topic}.txt")

    def run(self):
        with self.output().open("w") as file:
            file.write(ask(f"Say something about {self.topic}"))


class Sum(luigi.Task):
    def requires(self):
        return [Part("ants"), Part("bees")]

    def output(self):
        return luigi.LocalTarget("sum.txt")

    def run(self):
        said = [Path(part.path).read_text() for part in self.input()]
        with self.output().open("w") as file:
            file.write(ask("Sum up: " + "; ".join(said)))


luigi.build([Sum()], local_scheduler=True, log_level="ERROR")
print(Path("sum.txt").read_text())

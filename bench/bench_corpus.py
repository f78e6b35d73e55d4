"""A corpus of runs: SQL beside DuckDB itself, reading beside decoding the bytes, one run out of a pack."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import duckdb
import msgspec

import reenact
from bench.figure import BytesOver, Figure, ShareOfSpeed, TimesAsLong, best_in_turns
from reenact.boundary import Call, crossing
from reenact.corpus.parts import index_batch
from reenact.corpus.sources import find_sources, root_of
from reenact.store.objects import files_of
from reenact.store.pack import LocalFile, Pack, PackedRun, PackWriter

RUNS = 10_000
FEW_RUNS = 1_000
"""Where each of them is read in every round."""
PACKED_RUNS = 100_000
SQL = "select tool, count(*), quantile_cont(latency_ms, 0.95) from calls group by 1 order by 1"
RAY = "REENACT_RAY"
"""Set to have workers verify so many megabytes, which takes minutes; see `make bench-ray`."""
LONG_RUN_BYTES = 4_000_000


def figures() -> Iterator[Figure]:
    """The first for the whole query; reading and indexing per run; a pack in bytes."""
    with TemporaryDirectory() as folder:
        root = Path(folder)
        if RAY in os.environ:
            yield from _verify_by_workers(root, int(os.environ[RAY]) * 1_000_000)
            return
        run = _record(root / "one")
        runs = _copy(run, root / "runs", RUNS)
        started_s = process_time()  # of one process, as that of the update
        reenact.index(runs, out=root / "corpus", jobs=1)
        full_s = process_time() - started_s
        yield _query_by_index(root / "corpus")
        yield _update(runs, root / "corpus", full_s)
        yield _query_without_index(runs)
        yield _index(_copy(run, root / "few", FEW_RUNS))
        yield _open_packed(run, root)


@reenact.tool
def search(query: str) -> list[str]:
    return [f"{query}: {number} in stock" for number in range(20)]


def _record(path: Path) -> Path:
    """A run as agents make them: four turns of a growing chat, two tools each; 26 events of 500 bytes."""
    said = [{"role": "user", "content": "Where is my order? " * 10}]
    facts = {"provider": "openai_chat", "model": "gpt-5"}
    answer = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "I look it up. " * 10}}]}
    with reenact.capture(path, redact="none"):
        for turn in range(4):
            body = {"model": "gpt-5", "messages": list(said)}
            request = {"method": "POST", "url": "https://api.test/v1/chat/completions", "body": body}
            with crossing(Call("llm", "POST /v1/chat/completions", request, facts)) as step:
                step.answer = {"body": msgspec.json.encode(answer).decode(), "status": 200}
                step.facts = facts | {"stopReason": "stop", "usage": {"inputTokens": 100, "outputTokens": 20}}
            said += [
                {"role": "assistant", "content": "I look it up. " * 10},
                {"role": "user", "content": "?"},
            ]
            search(f"lamp {turn}")
            search(f"order {turn}")
    return path


def _copy(run: Path, into: Path, count: int) -> Path:
    for number in range(count):
        folder = into / f"{number // 1000:03d}" / f"{number:06d}"
        folder.mkdir(parents=True)
        for name in ("manifest.json", "events.jsonl"):
            shutil.copyfile(run / name, folder / name)
    return into


def _query_by_index(corpus: Path) -> Figure:
    def beside() -> object:
        with duckdb.connect(":memory:") as connection:
            connection.execute(f"create view calls as from read_parquet('{corpus}/calls/*.parquet')")
            return connection.sql(SQL).fetchall()

    ours_s, beside_s = best_in_turns(lambda: reenact.query(SQL, corpus), beside)
    return Figure(f"query {RUNS:,} runs by index", ours_s, "DuckDB", beside_s, TimesAsLong(1.3))


def _update(runs: Path, corpus: Path, full_s: float) -> Figure:
    new = _copy(runs / "000" / "000000", runs / "new", RUNS // 100)
    started_s = process_time()
    report = reenact.index(out=corpus, jobs=1)
    ours_s = process_time() - started_s
    assert report.added == RUNS // 100, report
    shutil.rmtree(new)
    return Figure("index 1 % new runs", ours_s, "all of them", full_s, TimesAsLong(0.05))


def _bare(runs: Path) -> None:
    decode = msgspec.json.Decoder().decode
    for manifest in runs.glob("*/*/manifest.json"):
        decode(manifest.read_bytes())
        for line in (manifest.parent / "events.jsonl").read_bytes().splitlines():
            decode(line)


def _query_without_index(runs: Path) -> Figure:
    ours_s, beside_s = best_in_turns(
        lambda: reenact.query(SQL, runs), lambda: _bare(runs), clock=process_time, rounds=3
    )
    per_run = (ours_s / RUNS, "msgspec", beside_s / RUNS)
    return Figure("query a run without an index", *per_run, TimesAsLong(1.5))


def _index(runs: Path) -> Figure:
    sources = list(find_sources([root_of(runs)], has_stamps=True))
    ours_s, beside_s = best_in_turns(
        lambda: index_batch(sources), lambda: _bare(runs), clock=process_time, rounds=5
    )
    return Figure("index a run", ours_s / FEW_RUNS, "msgspec", beside_s / FEW_RUNS, ShareOfSpeed(0.5))


class _CountedFile(LocalFile):
    read_bytes = 0

    def read(self, start: int, length: int) -> bytes:
        self.read_bytes += length
        return super().read(start, length)


class _FastWriter(PackWriter):
    """Writes the bytes of one run again and again, under other names."""

    def repeat(self, name: str, member: bytes, size_bytes: int) -> None:
        start = self._at
        self._write(member)
        self._runs.append(PackedRun(name, start, len(member), size_bytes, sha256(member).digest()))


def _open_packed(run: Path, folder: Path) -> Figure:
    file = folder / "all.pack"
    with (folder / "one.pack").open("wb") as stream:
        PackWriter(stream).add("run", run, files_of(run))
    member = (folder / "one.pack").read_bytes()[8:]
    size_bytes = sum((run / name).stat().st_size for name in files_of(run))
    with file.open("wb") as stream:
        writer = _FastWriter(stream)
        for number in range(PACKED_RUNS):
            writer.repeat(f"team/agent-20260131-{number:06d}", member, size_bytes)
        writer.close()
    counted = _CountedFile(file)
    pack = Pack(counted)
    found = pack.find(f"team/agent-20260131-{PACKED_RUNS // 2:06d}")
    assert found is not None
    (folder / "unpacked").mkdir()
    pack.unpack(found, folder / "unpacked")
    what = f"open one of {PACKED_RUNS:,} runs in a pack"
    bar = BytesOver(64 * 1024)
    return Figure(what, counted.read_bytes, "the run", found.length, bar, unit="B")


def _verify_by_workers(folder: Path, size_bytes: int) -> Iterator[Figure]:
    """Two workers beside one, as processes and as tasks of a Ray that is there already.

    On a machine of two cores the process that asked takes its part of both; starting a Ray takes seconds.
    """
    import ray

    run = _record_long(folder / "long")
    runs = _copy(run, folder / "much", size_bytes // (run / "events.jsonl").stat().st_size)
    reenact.verify_runs(runs)  # all files are in memory then
    for what, on in (("processes", None), ("tasks of Ray", "ray")):
        taken_s = {}
        for jobs in (1, 2):
            if on is not None:
                ray.init(num_cpus=jobs, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
                assert reenact.verify_runs(run, on=on).is_good  # a worker has started
            started_s = perf_counter()
            assert reenact.verify_runs(runs, jobs=jobs, on=on).is_good
            taken_s[jobs] = perf_counter() - started_s
            if on is not None:
                ray.shutdown()
        yield Figure(f"verify, 2 {what}", taken_s[2], "1 of them", taken_s[1], TimesAsLong(1 / 1.6))


def _record_long(path: Path) -> Path:
    """A run of many calls."""
    with reenact.capture(path, redact="none"):
        for number in range(LONG_RUN_BYTES // 900):
            search(f"order {number}")
    return path

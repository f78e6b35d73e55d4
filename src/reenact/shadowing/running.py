"""Many commands side by side, each forked or replayed in a process of its own, bounded by the cores.

The working folder, signals and standard streams are a process's, so each job has one. Ctrl-C ends those under
way, clears away what they began, and keeps what is done.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, Final

import msgspec

from reenact.errors import ReenactError, UsageError
from reenact.forks.change import OnMiss
from reenact.formats.volatile import VolatileRule
from reenact.store.place import discard_staged

_MODULE: Final = "reenact.shadowing.running"
_GRACE_S: Final = 5


class RunJob(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One run to make again."""

    run: str
    words: list[str]
    output: str = ""
    """Where the fork goes; without one the run is replayed strictly."""
    at: int | None = None
    change: dict[str, Any] = {}
    on_miss: OnMiss = "fail"
    volatile: tuple[VolatileRule, ...] = ()
    allow: list[str] = []
    upstreams: dict[str, str] = {}
    network: bool = False
    standalone: bool = False
    workspace: bool = False
    """Whether it works among the recorded files; without a point it does where there are any."""
    repository: str | None = None


class JobResult(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What came of it."""

    exit_status: int | None = None
    """Of the command; ``None`` where there is no fork, or no replay."""
    problem: str = ""
    """Why there is none, or in what a replay differs."""
    is_refused: bool = False
    """Nothing was run, because it cannot be meant."""


class Interrupted(Exception):
    """Ctrl-C came; what is done is kept."""


def core_count(jobs: int | None) -> int:
    """How many jobs run at a time: as many as asked for, or as there are cores."""
    return jobs or len(os.sched_getaffinity(0))


def run_jobs(jobs: Sequence[RunJob], *, workers: int, on_done: Callable[[int, JobResult], None]) -> None:
    """Run each of *jobs*; *on_done* gets its place and its result, whichever is done first."""
    running = _Running()
    with ThreadPoolExecutor(max(1, min(workers, len(jobs)))) as executor:
        places = {executor.submit(running.run, job): place for place, job in enumerate(jobs)}
        done: set[int] = set()
        try:
            for future in as_completed(places):
                place = places[future]
                on_done(place, future.result())
                done.add(place)
        except BaseException as error:
            running.stop()
            executor.shutdown(wait=True, cancel_futures=True)
            for place in set(places.values()) - done:
                if jobs[place].output:
                    discard_staged(Path(jobs[place].output))
            if isinstance(error, KeyboardInterrupt):
                raise Interrupted from None
            raise


class _Running:
    """The processes under way."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._is_stopped = False

    def run(self, job: RunJob) -> JobResult:
        with self._lock:
            if self._is_stopped:
                return JobResult(problem="stopped")
            process = subprocess.Popen(
                [sys.executable, "-m", _MODULE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is ours to pass on
            )
            self._processes.add(process)
        answer, said = process.communicate(msgspec.json.encode(job))
        with self._lock:
            self._processes.discard(process)
        if process.returncode != 0:
            lines = [line for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
            return JobResult(problem=lines[-1] if lines else f"ended with status {process.returncode}")
        return msgspec.json.decode(answer, type=JobResult)

    def stop(self) -> None:
        """End them, and what they started."""
        with self._lock:
            self._is_stopped = True
            processes = list(self._processes)
        for process in processes:
            _end(process, signal.SIGTERM)
        for process in processes:
            try:
                process.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                _end(process, signal.SIGKILL)


def _end(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def do_job(job: RunJob) -> JobResult:
    """Run the command of *job* in this process; what it prints is not shown."""
    # Slow to import, and only needed here.
    from reenact.commands.fork import fork_command
    from reenact.commands.replay import replay_command
    from reenact.store.reader import CaptureReader
    from reenact.workspace.history import WorkspaceHistory

    silent = os.open(os.devnull, os.O_WRONLY)
    try:
        workspace = job.workspace or (job.at is None and WorkspaceHistory.has_one(CaptureReader(job.run)))
        if not job.output:
            report = replay_command(
                job.run,
                job.words,
                policy="strict",
                volatile=job.volatile,
                allow=job.allow,
                network=job.network,
                stdout=silent,
                workspace=workspace,
                repository=job.repository,
            )
            if report.is_reproduced:
                return JobResult(exit_status=report.exit_status)
            found = report.receipt.divergences
            return JobResult(
                exit_status=report.exit_status, problem=_headline(found[0]) if found else "it differs"
            )
        fork = fork_command(
            job.run,
            job.words,
            at=job.at,
            change=job.change,
            output=job.output,
            on_miss=job.on_miss,
            standalone=job.standalone,
            volatile=job.volatile,
            upstreams=job.upstreams,
            allow=job.allow,
            network=job.network,
            stdout=silent,
            workspace=workspace,
            repository=job.repository,
        )
        return JobResult(exit_status=fork.exit_status)
    except UsageError as error:
        return JobResult(problem=str(error), is_refused=True)
    except ReenactError as error:
        return JobResult(problem=str(error))
    finally:
        os.close(silent)


def _headline(divergence: dict[str, Any]) -> str:
    return " ".join(str(divergence.get("detail") or divergence.get("code")).split())


def main() -> None:
    """The process of one job: reads it, does it, says what came of it."""
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=RunJob)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # the command has no input
    answer = os.dup(1)
    os.dup2(2, 1)
    result = do_job(job)
    os.write(answer, msgspec.json.encode(result))


if __name__ == "__main__":
    main()

"""Running many commands in parallel, each forked or replayed in its own process.

The working folder, signals and standard streams belong to a process, so each job has one. Ctrl-C stops the
running jobs, removes their unfinished forks, and keeps the finished ones.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing, suppress
from pathlib import Path
from secrets import token_hex
from threading import Lock, Thread
from typing import Final

import msgspec

from reenact.canonical import JsonField, JsonValue
from reenact.errors import ReenactError, UsageError
from reenact.forks.change import OnMiss
from reenact.formats.volatile import VolatileRule
from reenact.store.durable import unwritable
from reenact.store.place import discard, discard_staged
from reenact.workers import map_batches

_MODULE: Final = "reenact.shadowing.running"
_GRACE_S: Final = 5


class RunJob(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One run to make again."""

    run: str
    words: list[bytes]
    """The command; its words may have any encoding."""
    output: str = ""
    """Where the fork goes; if empty, the run is replayed strictly."""
    at: int | None = None
    change: dict[str, JsonField] = {}
    on_miss: OnMiss = "fail"
    volatile: tuple[VolatileRule, ...] = ()
    allow: list[str] = []
    upstreams: dict[str, str] = {}
    network: bool = False
    standalone: bool = False
    workspace: bool = False
    """Whether it works in the recorded files; a job without a point does so if there are any."""
    repository: str | None = None


class JobResult(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    exit_status: int | None = None
    """The exit status of the command; ``None`` without a fork or replay."""
    problem: str = ""
    """Why there is none, or how a replay differs."""
    prints_as_recorded: bool = True
    """Whether a replayed command printed the recorded output."""
    is_refused: bool = False
    """Nothing was run, because the arguments are wrong."""


class Interrupted(Exception):
    """Ctrl-C was pressed; finished jobs are kept."""


def core_count(jobs: int | None) -> int:
    """The number of parallel jobs: as given, or the number of cores."""
    return jobs or len(os.sched_getaffinity(0))


def run_jobs(
    jobs: Sequence[RunJob],
    *,
    workers: int,
    on_done: Callable[[int, JobResult], None],
    on: str | None = None,
) -> None:
    """Run each of *jobs*; *on_done* gets the index and the result of each job as it ends.

    With *on* (``ray``, ``ray=ADDRESS``) they are tasks of Ray, and *on_done* is called in their order.
    """
    if on is not None:
        _run_on_ray(jobs, workers, on, on_done)
        return
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


def _run_on_ray(
    jobs: Sequence[RunJob], workers: int, on: str, on_done: Callable[[int, JobResult], None]
) -> None:
    try:
        with closing(map_batches(try_job, jobs, jobs=workers, on=on)) as tries:
            for place, (job, (made, result)) in enumerate(zip(jobs, tries, strict=True)):
                if job.output and not result.problem:
                    result = _keep_try(Path(made), Path(job.output), result)
                on_done(place, result)
    except KeyboardInterrupt:
        raise Interrupted from None
    finally:
        _discard_tries({Path(job.output).parent for job in jobs if job.output})


def try_job(job: RunJob) -> tuple[str, JobResult]:
    """The task of Ray; every try makes its own fork, and one of them is moved to the output."""
    made = _try_folder(Path(job.output), token_hex(4)) if job.output else None
    tried = job if made is None else msgspec.structs.replace(job, output=str(made))
    result = _Running().run(tried)
    return str(made or ""), result


def _try_folder(output: Path, name: str) -> Path:
    return output.with_name(f".{output.name}.try-{name}")


def _keep_try(made: Path, output: Path, result: JobResult) -> JobResult:
    try:
        os.rename(made, output)
    except FileNotFoundError:
        reason = f"{output}: was made on another machine; name an output folder that all machines share"
        return msgspec.structs.replace(result, problem=reason)
    except OSError as error:
        raise unwritable(output, error) from error
    return result


def _discard_tries(folders: set[Path]) -> None:
    """Remove unused tries; a worker that was just stopped may still be writing one."""
    patience = time.monotonic() + 2 * _GRACE_S
    while time.monotonic() < patience:
        left = [each for folder in folders for each in folder.glob(".*.try-*")]
        if not left:
            return
        for each in left:
            discard(each)
        time.sleep(0.05)


class _Running:
    """The running processes."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._is_stopped = False

    def run(self, job: RunJob) -> JobResult:
        with self._lock:
            if self._is_stopped:
                return JobResult(problem="stopped")
            ours, theirs = os.pipe()
            process = subprocess.Popen(
                [sys.executable, "-m", _MODULE, str(ours)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[ours],  # it ends with this process, however that ends
                start_new_session=True,  # this process passes Ctrl-C on
            )
            os.close(ours)
            self._processes.add(process)
        try:
            answer, said = process.communicate(msgspec.json.encode(job))
        finally:
            os.close(theirs)
        with self._lock:
            self._processes.discard(process)
        if process.returncode != 0:
            lines = [line for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
            return JobResult(problem=lines[-1] if lines else f"ended with status {process.returncode}")
        return msgspec.json.decode(answer, type=JobResult)

    def stop(self) -> None:
        """Stop them with all processes that they started."""
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
    """Run the command of *job* in this process; its output is not shown."""
    # Slow to import, and only needed here.
    from reenact.commands.fork import fork_command
    from reenact.commands.replay import replay_command
    from reenact.store.reader import CaptureReader
    from reenact.store.remote import local_run
    from reenact.workspace.history import WorkspaceHistory

    silent = os.open(os.devnull, os.O_WRONLY)
    try:
        workspace = job.workspace
        if not workspace and job.at is None:
            with local_run(job.run) as folder:
                workspace = WorkspaceHistory.has_one(CaptureReader(folder))
        if not job.output:
            report = replay_command(
                job.run,
                list(map(os.fsdecode, job.words)),
                policy="strict",
                volatile=job.volatile,
                allow=job.allow,
                network=job.network,
                stdout=silent,
                workspace=workspace,
                repository=job.repository,
            )
            if report.is_reproduced:
                return JobResult(exit_status=report.exit_status, prints_as_recorded=report.prints_as_recorded)
            found = report.receipt.divergences
            return JobResult(
                exit_status=report.exit_status, problem=_headline(found[0]) if found else "it differs"
            )
        fork = fork_command(
            job.run,
            list(map(os.fsdecode, job.words)),
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


def _headline(divergence: dict[str, JsonValue]) -> str:
    return " ".join(str(divergence.get("detail") or divergence.get("code")).split())


def _end_with(asker: int) -> None:
    """Stop this process and its children when the parent process is gone."""
    os.read(asker, 1)
    os.killpg(0, signal.SIGTERM)
    time.sleep(_GRACE_S)
    os.killpg(0, signal.SIGKILL)


def main() -> None:
    """The process of one job: read it from stdin, run it, write the result to stdout."""
    Thread(target=_end_with, args=(int(sys.argv[1]),), daemon=True).start()
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=RunJob)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # the command has no input
    answer = os.dup(1)
    os.dup2(2, 1)
    result = do_job(job)
    os.write(answer, msgspec.json.encode(result))


if __name__ == "__main__":
    main()

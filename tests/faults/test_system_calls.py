"""One system call fails while a run is recorded: the agent goes on, and no event that was kept is lost.

A preloaded library lets the n-th call of a kind fail that is about the capture directory. The program that
records forks for each fault, so that Python starts once; the library counts anew in every child.
"""

import errno
import itertools
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reenact.check.integrity.capture import check_capture
from reenact.cli import main
from reenact.errors import StoreError
from reenact.store.reader import CaptureReader
from reenact.store.rundir import RunDir
from tests.cli.commands import ENVIRONMENT
from tests.hard import HARD, say

COMPILER = shutil.which("gcc") or shutil.which("cc")
pytestmark = pytest.mark.skipif(
    COMPILER is None or sys.platform != "linux", reason="needs a C compiler, and a loader that preloads"
)

CALLS = {
    "write": [errno.ENOSPC, errno.EIO, 0],
    "fsync": [errno.EIO],
    "fdatasync": [errno.EIO],
    "open": [errno.EMFILE, errno.EACCES],
    "mkdir": [errno.ENOSPC],
    "rename": [errno.EIO],
    "unlink": [errno.EROFS],
    "ftruncate": [errno.EIO],
    "flock": [errno.ENOLCK],
    "pread": [errno.EIO],
}
LARGEST = 200

RECORDING = """
import ctypes, json, os, sys
import reenact

@reenact.tool
def work(number):
    return {"number": number, "padding": "x" * (40_000 if number % 3 == 2 else 10)}

def agent(path, durability):
    done = []
    try:
        with reenact.capture(path, durability=durability):
            for number in range(8):
                assert work(number)["number"] == number
                done.append(number)
    except reenact.StoreError as error:
        return {"refused": str(error), "done": done}
    return {"refused": None, "done": done}

warm = reenact.capture, reenact.StoreError
for line in sys.stdin:
    orders = json.loads(line)
    pid = os.fork()
    if pid == 0:
        os.environ.update(orders["environment"])
        print(json.dumps(agent(orders["path"], orders["durability"])), flush=True)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print(json.dumps({"status": status}), flush=True)
"""


@pytest.fixture(scope="module")
def recorder(tmp_path_factory):
    """A process that records agents with a fault each."""
    library = tmp_path_factory.mktemp("fault") / "fault.so"
    source = Path(__file__).with_name("fault.c")
    subprocess.run([COMPILER, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", RECORDING],
        env=ENVIRONMENT | {"LD_PRELOAD": str(library)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    yield process
    process.stdin.close()
    process.wait(30)
    process.stdout.close()


def recorded(recorder, path, durability, call, at, error):
    """What the agent says for itself that is recorded into *path* under a fault."""
    environment = {
        "FAULT_CALL": call,
        "FAULT_AT": str(at),
        "FAULT_ERRNO": str(error),
        "FAULT_BELOW": str(path),
    }
    orders = {"path": str(path), "durability": durability, "environment": environment}
    recorder.stdin.write(json.dumps(orders) + "\n")
    recorder.stdin.flush()
    told = json.loads(recorder.stdout.readline())
    assert "done" in told, "the agent did not get to its end"
    assert json.loads(recorder.stdout.readline()) == {"status": 0}
    return told


def check(path, told):
    """The capture in *path* is what it says, or says what it is not; every call kept is a true one."""
    if told["refused"] is not None:
        assert told["done"] == []  # before the agent ran
        return
    assert told["done"] == [*range(8)]
    try:
        state = RunDir.open(path).state
    except StoreError:
        return  # nothing could be made at all, and nobody says otherwise
    if state.value == "interrupted":
        assert main(["recover", str(path)]) == 0
    reader = CaptureReader(path)
    numbers = [
        reader.resolve(event.data.result)["number"]
        for event in reader.events()
        if type(event).__name__ == "ToolResult"
    ]
    assert numbers == [*range(len(numbers))]
    if reader.manifest.status == "ok":
        assert len(numbers) == 8
        assert check_capture(path).is_good
    else:
        assert reader.manifest.error == "interrupted" or reader.manifest.error.startswith("recording failed")


@pytest.mark.parametrize("call", CALLS)
def test_a_failing_call_costs_the_recording_at_most(call, recorder, tmp_path, capsys):
    """Each call of the kind fails once, with each error, until no further one is made."""
    tried = hurt = 0
    for durability, error in itertools.product(("process", "disk"), CALLS[call]):
        whole = 0
        for at in itertools.count(1, 1 if HARD else 4):
            path = tmp_path / "run"
            told = recorded(recorder, path, durability, call, at, error)
            check(path, told)
            tried += 1
            is_whole = told["refused"] is None and RunDir(path).is_capture
            is_whole = is_whole and CaptureReader(path).manifest.status == "ok"
            hurt += not is_whole
            whole = whole + 1 if is_whole else 0
            shutil.rmtree(path, ignore_errors=True)
            if whole >= 3 or at > LARGEST:  # no fault happened any more
                break
    capsys.readouterr()
    say(f"{tried} failing calls of {call}, {hurt} of which ended the recording")
    assert hurt or call in ("fdatasync", "ftruncate", "mkdir", "unlink")  # the fault really happens

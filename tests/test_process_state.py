"""What a process shares while runs are open: nothing of a run is left behind, and no fork inherits a lock."""

import subprocess
import sys

IN_A_RUN = """
import random, subprocess, time, uuid
import reenact
from reenact import process_state
from reenact.process_state import Registry

KEPT = {"this_process", "this_thread", "locks", "audit_listeners", "library_modules", "file_digests"}

@reenact.tool
def look(what):
    return what.upper()

def work():
    look("a")
    random.random(), time.time(), uuid.uuid4()
    subprocess.run(["true"], check=True)

def size(value):
    return len(value.entries) if isinstance(value, Registry) else len(value)

def filled():
    state = {name: value for name, value in vars(process_state).items() if name not in KEPT}
    state = {name: each for name, each in state.items() if isinstance(each, (Registry, dict, set, list))}
    return {name for name, each in state.items() if name[0] != "_" and size(each)}

with reenact.capture("run"):
    work()
    print({"open_runs", "applied_patches", "recorded_sources", "name_exchange"} <= filled())
with reenact.replay("run"):
    work()
    print({"open_runs", "open_guards", "open_watches"} & filled() == {"open_runs", "open_guards"})
print(sorted(filled() - {"names_of_libraries"}))
"""


def test_what_belongs_to_runs_is_gone_with_the_last_one(tmp_path):
    """After a recording and a replay only caches and what lasts as long as the process are left."""
    done = subprocess.run(
        [sys.executable, "-c", IN_A_RUN], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["True", "True", "[]"]


FORK = """
import os, threading
from reenact.process_state import locks, open_guards

is_held, may_go = threading.Event(), threading.Event()

def hold():
    with locks.runs, locks.patches, open_guards.lock:
        is_held.set()
        may_go.wait()

thread = threading.Thread(target=hold)
thread.start()
is_held.wait()
pid = os.fork()
if not pid:
    taken = [each.acquire(timeout=5) for each in (locks.runs, locks.patches, open_guards.lock)]
    os._exit(0 if all(taken) else 1)
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
may_go.set()
raise SystemExit(status)
"""


def test_a_forked_child_waits_for_no_lock_of_its_parent():
    """A thread that held one when the process forked does not exist in the child."""
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], check=True)

"""A program may use recorded functions and classes as the real ones: as attributes, pickled, copied."""

from __future__ import annotations

import copy
import datetime
import io
import os
import pickle
import random
import secrets
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import pytest

import reenact

FUNCTIONS: dict[str, Callable[[], Any]] = {
    "time.time": lambda: time.time,
    "time.sleep": lambda: time.sleep,
    "time.perf_counter_ns": lambda: time.perf_counter_ns,
    "time.localtime": lambda: time.localtime,
    "random.random": lambda: random.random,
    "random.choice": lambda: random.choice,
    "os.urandom": lambda: os.urandom,
    "os.getcwd": lambda: os.getcwd,
    "os.getenv": lambda: os.getenv,
    "os.system": lambda: os.system,
    "builtins.open": lambda: open,
    "secrets.token_hex": lambda: secrets.token_hex,
    "subprocess.run": lambda: subprocess.run,
    "uuid.uuid4": lambda: uuid.uuid4,
}
CLASSES: dict[str, Callable[[], Any]] = {
    "datetime.datetime": lambda: datetime.datetime,
    "datetime.date": lambda: datetime.date,
    "random.Random": lambda: random.Random,
    "subprocess.Popen": lambda: subprocess.Popen,
}
ELSEWHERE = "import pickle, sys; print(pickle.load(sys.stdin.buffer)); assert 'reenact' not in sys.modules"


def test_a_recorded_function_is_an_attribute_of_a_class_as_the_real_one(tmp_path: Path) -> None:
    """Compiled functions are not bound to the objects of the class."""
    for run in (reenact.capture, reenact.replay):
        with run(tmp_path / "run") as opened:
            clock: Any = type(
                "Clock", (), {name.rpartition(".")[2]: get() for name, get in FUNCTIONS.items()}
            )()
            assert clock.time() > 0
            assert clock.sleep(0) is None
            assert clock.perf_counter_ns() > 0
            assert clock.random() < 1
            assert clock.choice([1]) == 1
            assert len(clock.urandom(3)) == 3
            assert clock.getcwd() == str(Path.cwd())
            assert clock.system("true") == 0
            with clock.open(os.devnull) as file:
                assert isinstance(file, io.IOBase)
        assert (opened.warnings, opened.divergences) == ([], [])


@pytest.mark.parametrize("name", [*FUNCTIONS, *CLASSES])
def test_what_is_recorded_is_pickled_by_the_name_of_the_real_one(name: str, tmp_path: Path) -> None:
    """As for a pool of processes; a process without reenact can read it."""
    module, _, attribute = name.rpartition(".")
    with reenact.capture(tmp_path / "run"):
        thing = (FUNCTIONS | CLASSES)[name]()
        pickled = [pickle.dumps(thing), pickle._dumps(thing), cloudpickle.dumps(thing)]  # type: ignore[attr-defined]
    for text in pickled:
        assert pickle.loads(text) is getattr(sys.modules[module], attribute)
        there = subprocess.run(
            [sys.executable, "-I", "-c", ELSEWHERE], input=text, capture_output=True, check=True
        )
        assert attribute.encode() in there.stdout


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_copy_of_a_recorded_function_is_recorded_too(name: str, tmp_path: Path) -> None:
    with reenact.capture(tmp_path / "run"):
        thing = FUNCTIONS[name]()
        assert copy.copy(thing) is thing
        assert copy.deepcopy({"of": thing})["of"] is thing
        assert repr(thing).startswith(("<built-in", "<function", "<bound method"))


def test_a_subclass_of_a_recorded_class_is_pickled_by_its_own_name(tmp_path: Path) -> None:
    with reenact.capture(tmp_path / "run"):

        class Later(datetime.datetime):
            pass

        Later.__qualname__ = "Later"
        globals()["Later"] = Later
        try:
            assert pickle.loads(pickle.dumps(Later)) is Later
            moment = pickle.loads(pickle.dumps(Later(2026, 1, 2)))
            assert (type(moment), moment.day) == (Later, 2)
        finally:
            del globals()["Later"]


def test_a_program_sends_functions_that_use_recorded_names_to_other_processes(tmp_path: Path) -> None:
    """cloudpickle copies a function of the main program with the modules and classes that it uses."""
    program = """
import pickle, random, subprocess, time
from datetime import datetime
from multiprocessing import Pool
from subprocess import Popen
import cloudpickle, joblib
def work(number):
    time.sleep(0.01)
    return datetime.now().year > 2000, random.random() < 1, Popen(["true"]).wait(), number
if __name__ == "__main__":
    print(pickle.loads(cloudpickle.dumps(work))(1))
    print(joblib.Parallel(n_jobs=2)(joblib.delayed(work)(number) for number in range(3)))
    with Pool(2) as pool:
        print(pool.map(time.sleep, [0.01, 0.01]))
"""
    (tmp_path / "agent.py").write_text(program)
    agent = [sys.executable, "agent.py"]
    plain = subprocess.run(agent, cwd=tmp_path, capture_output=True, check=True)
    for words in (["record", "-o", "run"], ["replay", "run"]):
        done = subprocess.run(
            [sys.executable, "-m", "reenact", *words, "--", *agent],
            cwd=tmp_path,
            capture_output=True,
            check=False,
        )
        assert (done.stdout, done.returncode) == (plain.stdout, 0), done.stderr


def test_a_library_has_replaced_functions_as_attributes_of_a_class(tmp_path: Path) -> None:
    """While a command is recorded, the clock and processes of libraries are, too."""
    library = """
import copy, os, pickle, time
class Limiter:
    clock, counter, moment, run = time.time, time.perf_counter, time.localtime, os.system
    def ask(self):
        return self.clock() > 0, self.counter() > 0, self.moment().tm_year > 2000, self.run("true")
    def pickled(self):
        return pickle.loads(pickle.dumps(self.clock)) is time.time, copy.deepcopy(os.system) is os.system
"""
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "limits.py").write_text(library)
    (tmp_path / "agent.py").write_text(
        "import limits\nprint(limits.Limiter().ask(), limits.Limiter().pickled())"
    )
    agent = [sys.executable, "agent.py"]
    for words in (["record", "-o", "run"], ["replay", "run"]):
        done = subprocess.run(
            [sys.executable, "-m", "reenact", *words, "--", *agent],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path / "site-packages")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout == "(True, True, True, 0) (True, True)\n", done.stderr

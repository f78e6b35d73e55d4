"""Stand-ins are in the agent's modules only, only while a run is open, and leave no trace."""

from __future__ import annotations

import asyncio
import builtins
import importlib
import json
import logging
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

import reenact
from reenact.formats.capture import write_manifest
from reenact.library import is_library
from reenact.seams import imports
from reenact.seams.patches import Replacement
from reenact.seams.stdlib.stand_ins import StandIn, StandInMeta

Import = Callable[[str], ModuleType]
USES = """
    import datetime, os, random, secrets, time, uuid
    from datetime import date, datetime as moment
    from os import urandom
    from random import *
    from time import time as now, sleep
    from uuid import uuid4
"""


def reads(path: Path) -> int:
    """How many reads the capture holds."""
    return sum(event["type"] == "nondeterministic" for event in raw_events(path))


def raw_events(path: Path) -> list[dict]:
    return [json.loads(line) for line in (path / "events.jsonl").read_text().splitlines()]


def stand_ins_in_sight() -> list[str]:
    """Every name in any module that holds one of ours."""
    return [
        f"{name}.{key}"
        for name, module in list(sys.modules.items())
        if not name.startswith("reenact.") and hasattr(module, "__dict__")
        for key, value in list(vars(module).items())
        if is_ours(value)
    ]


def is_ours(value: object) -> bool:
    if issubclass(type(value), StandIn | StandInMeta):
        return True
    if isinstance(value, Replacement):
        value = value.func
    try:
        owner = type(getattr(value, "__self__", value))
        file = getattr(getattr(value, "__code__", None), "co_filename", "")
    except Exception:  # a library's own proxy, which answers to no name before it is used
        return False
    return "reenact/seams/stdlib" in str(file) or str(owner.__module__).startswith("reenact.seams")


def is_agents_own(module: ModuleType) -> bool:
    """Whether stand-ins may be in *module*: any that is no library's, so the tests' and the benchmarks'.

    What was started as a program counts as the agent's, also a test runner's worker, which has no file.
    """
    if module is sys.modules["__main__"]:
        return True
    return not is_library(getattr(module, "__file__", None) or "<frozen >")


def test_nothing_is_left_after_the_run(tmp_path: Path, module_of: Import) -> None:
    """Names bound before, during and through a wildcard are the real objects again."""
    before = module_of(USES)
    bound_before = dict(vars(before))
    with reenact.capture(tmp_path / "run"):
        during = module_of(USES)
        assert is_ours(before.time)
        assert is_ours(before.now)
        assert is_ours(during.uuid4)
        assert is_ours(during.moment)
        assert is_ours(during.randint)
    assert {name: value for name, value in vars(before).items() if bound_before[name] is not value} == {}
    assert during.now is __import__("time").time
    assert during.random is __import__("random").random
    assert stand_ins_in_sight() == []
    assert "reenact" not in builtins.__import__.__module__


def test_nothing_is_left_when_the_agent_fails(tmp_path: Path, module_of: Import) -> None:
    """The run's end is what counts, not how it came."""
    agent = module_of(USES)
    with pytest.raises(ZeroDivisionError), reenact.capture(tmp_path / "run"):
        agent.now(), 1 / 0
    assert stand_ins_in_sight() == []


def test_libraries_keep_the_real_things(tmp_path: Path) -> None:
    """While a run is open no module of a library, loaded before or during it, holds a stand-in."""
    for name in ("statistics", "sched", "wsgiref.handlers"):
        sys.modules.pop(name, None)
    with reenact.capture(tmp_path / "run"):
        import sched
        import wsgiref.handlers

        import httpx2
        import pydantic

        assert sched._time is __import__("importlib").import_module("time").monotonic
        assert all((httpx2, pydantic, wsgiref.handlers))
        ours = {name.rpartition(".")[0] for name in stand_ins_in_sight()}
        # All but the import itself, which must see who asks, and what starts processes, whoever does.
        assert {name for name in ours if not is_agents_own(sys.modules[name])} == {
            "builtins",
            "os",
            "pty",
            "socket",
        }


@pytest.fixture
def library_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ModuleType]]:
    """Installs a package with these modules and imports the one called ``functions``."""
    folder = tmp_path / "site-packages"
    monkeypatch.syspath_prepend(folder)

    def library_of(**sources: str) -> ModuleType:
        for name, source in {"__init__": "", **sources}.items():
            file = folder / "some_library" / f"{name}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(source)
        importlib.invalidate_caches()
        return importlib.import_module("some_library.functions")

    yield library_of
    for name in [name for name in sys.modules if name.startswith("some_library")]:
        del sys.modules[name]


def test_what_a_library_fails_to_import_is_run_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library_of: Callable[..., ModuleType]
) -> None:
    """An error of a module that is being imported is not taken for one of ours."""
    monkeypatch.setattr(sys, "attempts", 0, raising=False)
    library = library_of(
        functions="def attempt():\n    import json\n    from . import failing",
        failing="import sys; sys.attempts += 1; raise KeyError('missing')",
    )
    with reenact.capture(tmp_path / "run"):
        for attempts in (1, 2):
            with pytest.raises(KeyError, match="missing"):
                library.attempt()
            assert sys.attempts == attempts


@pytest.mark.parametrize("libraries", [{}, {"some_library.old": lambda _: []}], ids=["plain", "patched"])
def test_a_module_warns_the_one_that_imports_it(
    tmp_path: Path, library_of: Callable[..., ModuleType], libraries: imports.Libraries
) -> None:
    """A filter for the importing module holds in a run, too: what it ignores does not become an error."""
    warns = "import warnings; warnings.warn('it is old', DeprecationWarning, stacklevel=2)"
    library = library_of(functions="def use():\n    from . import old", old=warns)
    with (
        reenact.capture(tmp_path / "run"),
        imports.watch_imports(libraries),
        warnings.catch_warnings(record=True) as seen,
    ):
        warnings.simplefilter("always")
        library.use()
    assert [(Path(one.filename).name, str(one.message)) for one in seen] == [("functions.py", "it is old")]


def test_a_library_that_imports_again_gets_what_is_there_now(
    tmp_path: Path, library_of: Callable[..., ModuleType]
) -> None:
    """Where an import leads is remembered, what is found there is not."""
    library = library_of(
        functions="def read():\n    from .values import value\n    return value", values="value = 1"
    )
    with reenact.capture(tmp_path / "run"):
        assert [library.read(), library.read()] == [1, 1]
        sys.modules["some_library.values"].value = 2
        assert library.read() == 2
        sys.modules["some_library.values"] = other = ModuleType("some_library.values")
        other.value = 3
        assert [library.read(), library.read()] == [3, 3]
        del sys.modules["some_library.values"]
        assert [library.read(), library.read()] == [1, 1]
        del sys.modules["some_library.values"].value
        with pytest.raises(ImportError, match="value"):
            library.read()


def test_a_librarys_submodules_are_imported_when_asked_for(
    tmp_path: Path, library_of: Callable[..., ModuleType]
) -> None:
    """An import from a package may have to load something each time."""
    library = library_of(
        functions="def read(name):\n    return getattr(__import__('', globals(), None, [name], 1), name)",
        **dict.fromkeys(("one", "two", "three"), ""),
    )
    with reenact.capture(tmp_path / "run"):
        for name in ("one", "two", "three"):
            assert library.read(name).__name__ == f"some_library.{name}"


def test_lazy_objects_are_not_woken_by_an_import(
    tmp_path: Path, module_of: Import, library_of: Callable[..., ModuleType]
) -> None:
    """Django's settings may not be asked for their class before they are configured."""
    library = library_of(
        functions="""
class Lazy:
    def __getattribute__(self, name):
        raise LookupError(name)
settings = Lazy()

def load_later():
    import importlib.util, sys
    spec = importlib.util.find_spec("some_library.late")
    spec.loader = importlib.util.LazyLoader(spec.loader)
    sys.modules[spec.name] = sys.modules["some_library"].late = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[spec.name])
    return sys.modules[spec.name]
""",
        late="import sys; sys.loaded_late = True",
    )
    with reenact.capture(tmp_path / "run"):
        late = library.load_later()
        agent = module_of("from some_library import late\nfrom some_library.functions import settings\n")
        assert type(agent.settings).__name__ == "Lazy"
        assert not hasattr(sys, "loaded_late")
    assert object.__getattribute__(late, "__class__").__name__ == "_LazyModule"


def test_a_library_waits_for_a_module_that_another_thread_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library_of: Callable[..., ModuleType]
) -> None:
    """What one thread sees while it loads a module is not handed to another."""
    seen, may_go_on = threading.Event(), threading.Event()
    monkeypatch.setattr(sys, "halfway", (seen, may_go_on), raising=False)
    library = library_of(
        functions="def read():\n    import json\n    from .slow import value\n    return value",
        slow=(
            "import sys\nfrom . import functions\nvalue = 'early'\nfunctions.read()\n"
            "seen, may_go_on = sys.halfway\nseen.set(); may_go_on.wait(30)\nvalue = 'late'"
        ),
    )
    with reenact.capture(tmp_path / "run"), ThreadPoolExecutor(2) as pool:
        first = pool.submit(library.read)
        seen.wait(30)
        second = pool.submit(library.read)
        with pytest.raises(TimeoutError):
            second.result(timeout=0.05)
        may_go_on.set()
        assert [first.result(), second.result()] == ["late", "late"]


def test_libraries_read_the_clock_unseen(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Logging, asyncio and tempfile do what they do without an event."""
    import tempfile

    async def nap() -> None:
        await asyncio.sleep(0.001)

    with reenact.capture(tmp_path / "run"):
        logging.getLogger("agent").warning("at %s", "work")
        asyncio.run(nap())
        tempfile.mkdtemp(dir=tmp_path)
    assert reads(tmp_path / "run") == 0
    assert caplog.messages == ["at work"]


def test_modules_say_which_are_the_agents(tmp_path: Path, module_of: Import) -> None:
    """With *modules* only those named are the agent's, and replay knows it from the capture."""
    one, two = module_of("import time\ndef read(): return time.time()"), module_of("import time")
    with reenact.capture(tmp_path / "run", modules=[one.__name__]) as run:
        recorded = one.read()
        assert not is_ours(two.time)
        assert not is_ours(time)
    assert run.manifest.standIns.modules == [one.__name__]
    with reenact.replay(tmp_path / "run"):
        assert one.read() == recorded
        assert not is_ours(two.time)


def test_a_package_stands_for_its_modules(tmp_path: Path) -> None:
    """Naming a library makes it the agent's, its submodules included."""
    import sched

    with reenact.capture(tmp_path / "run", modules=["sched", "no.such.*"]):
        assert is_ours(sched.time)
    assert not is_ours(sched.time)


def test_two_runs_at_once_choose_by_themselves(tmp_path: Path) -> None:
    """Each run records what it chose; the stand-ins go with the last."""
    both_open, one_closed = threading.Barrier(2), threading.Event()

    def agent(name: str, sources: list[str]) -> None:
        with reenact.capture(tmp_path / name, sources=sources):
            both_open.wait(10)
            time.time()
            if name == "second":
                one_closed.wait(10)
                time.time()
        one_closed.set()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(agent, ["first", "second"], [[], ["time"]]))
    assert reads(tmp_path / "first") == 0
    assert reads(tmp_path / "second") == 2
    assert stand_ins_in_sight() == []


def test_threads_and_tasks_have_their_own_order(tmp_path: Path) -> None:
    """Reads are matched in their lane, however the lanes interleave."""

    async def reader(count: int) -> list[float]:
        values = []
        for _ in range(count):
            values.append(time.time())
            await asyncio.sleep(0)
        return values

    async def agent() -> list[object]:
        in_threads = [asyncio.to_thread(time.time_ns) for _ in range(5)]
        return await asyncio.gather(*map(reader, range(10)), *in_threads)

    with reenact.capture(tmp_path / "run"):
        recorded = asyncio.run(agent())
    with reenact.replay(tmp_path / "run"):
        assert asyncio.run(agent()) == recorded


def test_a_test_may_set_the_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who replaces a function of the real module is heard, and putting it back leaves the real one."""
    real = __import__("importlib").import_module("time").time
    with reenact.capture(tmp_path / "run"):
        with monkeypatch.context() as patch:
            patch.setattr(time, "time", lambda: 42.0)
            assert time.time() == 42.0
        assert time.time() > 42
    assert time.time is real
    assert [event["data"]["value"] for event in raw_events(tmp_path / "run")[1:2]] == [42.0]


def test_a_stand_in_looks_like_its_module(tmp_path: Path) -> None:
    """Everything that is not exchanged is the real module's."""
    real = __import__("importlib").import_module("time")
    with reenact.capture(tmp_path / "run"):
        assert (time.__name__, time.__spec__, repr(time)) == ("time", real.__spec__, repr(real))
        assert time.tzname is real.tzname
        assert set(dir(time)) == set(dir(real))
        assert time.time.__name__ == "time"


def test_a_script_is_an_agent(tmp_path: Path) -> None:
    """What runs as __main__, from a file or from the command line, is recorded."""
    script = f"""
import time, reenact
with reenact.capture({str(tmp_path / "run")!r}):
    import random as chance
    [time.time() for _ in range(2)]
    (lambda: print(chance.random()))()
    open("/dev/null", "w").close()
assert "open" not in globals()
"""
    subprocess.run([sys.executable, "-c", script], check=True)
    assert reads(tmp_path / "run") == 3


def test_an_unknown_source_is_refused(tmp_path: Path) -> None:
    """The message lists the known ones."""
    with pytest.raises(reenact.UsageError, match="sources='weather' is unknown; choose from time, random"):
        reenact.capture(tmp_path / "run", sources=["weather"])


def test_an_older_capture_replays_as_before(tmp_path: Path) -> None:
    """A capture that does not say what it exchanged was made before anything was."""
    with reenact.capture(tmp_path / "run", sources=[]) as run:
        pass
    older = msgspec.structs.replace(run.manifest, standIns=msgspec.UNSET)
    (tmp_path / "run" / "manifest.json").write_bytes(write_manifest(older))
    with reenact.replay(tmp_path / "run"):
        assert not is_ours(time)

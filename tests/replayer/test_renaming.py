"""Requests that are equal up to generated names and times: the same call; anything else is none."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import os
import random
import secrets
import socket
import string
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

import reenact
from reenact.boundary import Call, crossing
from reenact.replayer import renaming
from reenact.run.evidence import RunEvidence
from reenact.volatile.places import Places
from reenact.volatile.times import Window
from tests.cli.commands import run
from tests.twice import captured, replayed

DAY = timedelta(days=1)


@reenact.tool
def do(**arguments: Any) -> Any:
    return {"done": arguments}


@reenact.tool
def tell(**arguments: Any) -> str:
    """Its answer has nothing of what it was asked."""
    return "told"


def ask(text: str, **body: Any) -> Any:
    facts = {"provider": "p", "model": "m", "inputHash": "sha256:" + "0" * 64}
    request = {"method": "POST", "url": "http://a/v1", "body": {"messages": [{"content": text}], **body}}
    with crossing(Call("llm", "p", request, facts)) as step:
        if step.live:
            step.answer = f"answer to {text}"
            step.facts = {"provider": "p", "model": "m", "stopReason": None, "usage": None}
    return step.answer


def nanoid() -> str:
    letters = "_-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return "".join(letters[byte & 63] for byte in os.urandom(21))


def ulid() -> str:
    letters = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    number = int(time.time() * 1000) << 80 | int.from_bytes(os.urandom(10))
    return "".join(letters[number >> 5 * place & 31] for place in reversed(range(26)))


def uuid7() -> str:
    number = int(time.time() * 1000) << 80 | int.from_bytes(os.urandom(10))
    number = number & ~(0xF000 << 64) & ~(0xC000 << 48) | 7 << 76 | 0x8000 << 48
    return str(uuid.UUID(int=number))


def in_base(number: int, letters: str, length: int) -> str:
    base = len(letters)
    return "".join(letters[number // base**place % base] for place in reversed(range(length)))


def ksuid(age_s: float = 0) -> str:
    number = int(time.time() - age_s) - 1_400_000_000 << 128 | int.from_bytes(os.urandom(16))
    return in_base(number, string.digits + string.ascii_uppercase + string.ascii_lowercase, 27)


def xid() -> str:
    number = int(time.time()) << 64 | int.from_bytes(os.urandom(8))
    return in_base(number << 4, string.digits + "abcdefghijklmnopqrstuv", 20)


def cuid() -> str:
    number = int(time.time() * 1000) * 36**16 + int.from_bytes(os.urandom(10))
    return f"c{in_base(number, string.digits + string.ascii_lowercase, 24)}"


def time_36(age_s: float = 0) -> str:
    return in_base(int((time.time() - age_s) * 1000), string.digits + string.ascii_lowercase, 8)


COUNT = itertools.count()


def digest(content: bytes) -> bytes:
    return hashlib.sha1(content).digest()


def cuid2() -> str:
    begin = in_base(int(time.time() * 1000), string.digits + string.ascii_lowercase, 8)
    digested = hashlib.sha3_512(
        f"{begin}{secrets.choice(string.ascii_letters)}{next(COUNT)}".encode()
    ).digest()
    letter = secrets.choice(string.ascii_lowercase)
    return f"{letter}{in_base(int.from_bytes(digested), string.digits + string.ascii_lowercase, 99)[-60:-37]}"


def dashed(separator: str = "-") -> str:
    """The dash is of the digest, but not of a word."""
    made = iter(lambda: base64.urlsafe_b64encode(digest(os.urandom(9))).decode()[:12], "")
    return next(name for name in made if name.startswith(separator))


def digest_in_parts() -> str:
    made = hashlib.new("sha256")
    made.update(b"run of ")
    made.update(uuid.uuid4().hex.encode())
    return made.copy().hexdigest()[-20:]


def snowflake(age_s: float = 0, epoch_ms: int = 1_288_834_974_657) -> int:
    return int((time.time() - age_s) * 1000) - epoch_ms << 22 | 7 << 12 | next(COUNT)


def slug() -> str:
    words = random.choice(["plain", "gentle", "brave"]), random.choice(["hypatia", "turing", "noether"])
    return f"{'-'.join(words)}-{uuid.uuid4().hex[:8]}"


MAKERS: dict[str, Callable[[], str]] = {
    "a UUID": lambda: str(uuid.uuid4()),
    "without dashes": lambda: uuid.uuid4().hex,
    "in capitals": lambda: str(uuid.uuid4()).upper(),
    "behind a prefix": lambda: f"pyd_ai_{uuid.uuid4().hex}",
    "behind a prefix with dashes": lambda: f"msg_{uuid.uuid4()}",
    "of time": lambda: str(uuid.uuid1()),
    "of time, sorted": uuid7,
    "a ULID": ulid,
    "a KSUID": ksuid,
    "an ObjectId": lambda: f"{int(time.time()):08x}{os.urandom(8).hex()}",
    "an xid": xid,
    "a cuid": cuid,
    "a snowflake": lambda: str(snowflake()),
    "a time in base 36": lambda: time_36(),
    "in capitals with chance behind it": lambda: f"{time_36().upper()}{secrets.token_hex(3).upper()}",
    "a time in hex": lambda: f"run-{int(time.time() * 1000):x}",
    "a second in hex": lambda: f"{int(time.time()):x}",
    "a TypeID": lambda: f"user_{ulid().lower()}",
    "a nanoid": nanoid,
    "its beginning": lambda: uuid.uuid4().hex[:8],
    "its end": lambda: uuid.uuid4().hex[-12:],
    "hex": lambda: secrets.token_hex(16),
    "long hex": lambda: secrets.token_hex(32),
    "for addresses": lambda: f"call_{secrets.token_urlsafe(18)}",
    "letters by lot": lambda: f"run-{''.join(random.choices(string.ascii_lowercase, k=10))}",
    "letter by letter": lambda: "".join(
        random.choice(string.ascii_letters + string.digits) for _ in range(24)
    ),
    "secret letters": lambda: "".join(secrets.choice(string.ascii_letters) for _ in range(16)),
    "bits": lambda: f"{random.getrandbits(128):032x}",
    "few bits": lambda: f"{random.getrandbits(64):016x}",
    "a UUID of bits": lambda: str(uuid.UUID(int=random.getrandbits(128), version=4)),
    "a slug": slug,
    "base 32": lambda: base64.b32encode(os.urandom(10)).decode(),
    "of a digest": lambda: hashlib.sha256(uuid.uuid4().bytes).hexdigest(),
    "the beginning of a digest": lambda: hashlib.md5(str(uuid.uuid4()).encode()).hexdigest()[:8],
    "of a digest for addresses": lambda: base64.urlsafe_b64encode(digest(os.urandom(9))).decode()[:12],
    "of a digest behind a dash": dashed,
    "of a digest behind an underscore": lambda: dashed("_"),
    "of a digest of the time": lambda: digest(f"run {time.time()}".encode()).hex()[:16],
    "of a digest of a digest": lambda: digest(digest(os.urandom(9)).hex().encode()).hex(),
    "of a digest made in parts": digest_in_parts,
    "a UUID of a name that was drawn": lambda: str(uuid.uuid5(uuid.NAMESPACE_DNS, str(uuid.uuid4()))),
    "a cuid of the second kind": cuid2,
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
def test_a_generated_name_may_be_another(tmp_path: Path, make: Callable[[], str]) -> None:
    """Wherever it stands: alone, in running text, as a key, in an address, in JSON in a text."""

    def agent(run: reenact.Run) -> None:
        name, other = make(), make()
        ask(f"You are {name}. Go on!", user=name)
        tell(name=other, first=name)
        tell(names={name: 1, "fixed": 2}, inner=json.dumps({"a": {"id": other}, "b": [name]}))
        tell(url=f"http://host/{name}/x?id={other}#top", path=f"/srv/{name}.json")

    captured(tmp_path / "run", agent)
    replayed(tmp_path / "run", agent)


NAMED: dict[str, Callable[[], str]] = {
    "behind two separators": lambda: dashed("_-"),
    "with separators and an ending": lambda: (
        f"{next(name for name in iter(nanoid, '') if '-' in name)}-again_2"
    ),
}


@pytest.mark.parametrize("make", NAMED.values(), ids=NAMED.keys())
def test_a_generated_name_may_have_separators(tmp_path: Path, make: Callable[[], str]) -> None:
    """As its first letters, and where more stands behind it."""

    def agent(run: reenact.Run) -> None:
        name = make()
        tell(name=name, text=f"Look at {name}.", url=f"http://host/{name}?q=run-{name}")

    captured(tmp_path / "run", agent)
    replayed(tmp_path / "run", agent)


def test_a_snowflake_may_be_a_number(tmp_path: Path) -> None:
    """As libraries return it; with whatever beginning of time."""

    def agent(run: reenact.Run) -> None:
        tell(id=snowflake(), other=snowflake(epoch_ms=0))

    captured(tmp_path / "run", agent)
    replayed(tmp_path / "run", agent)


def test_what_was_renamed_is_told(tmp_path: Path) -> None:
    """In the receipt: once each, with the first place; and the times."""
    names: list[str] = []

    def agent(run: reenact.Run) -> None:
        names.append(str(uuid.uuid4()))
        tell(id=names[-1])
        tell(id=names[-1], at=time.time())

    captured(tmp_path / "run", agent)
    with reenact.replay(tmp_path / "run") as run:
        agent(run)
    assert run.receipt is not None
    renamed, times = run.receipt.renamed or [], run.receipt.times or []
    assert [(each.recorded, each.live, each.eventSeq) for each in renamed] == [(*names, 2)]
    assert [each.jsonPath for each in (*renamed, *times)] == ["$.arguments.id", "$.arguments.at"]


def test_an_answer_has_the_names_of_this_run(tmp_path: Path) -> None:
    """Where the recorded answer repeats a renamed value."""

    def agent(run: reenact.Run) -> bool:
        name = uuid.uuid4()
        whole = do(id=str(name), bare=name.hex)
        again = tell(id=whole["done"]["id"], bare=whole["done"]["bare"])
        return bool(whole == {"done": {"id": str(name), "bare": name.hex}} and again)

    assert captured(tmp_path / "run", agent)
    assert replayed(tmp_path / "run", agent)


DIFFERENT: dict[str, Callable[[dict[str, str]], Any]] = {
    "another id that was given": lambda ids: tell(id=ids["given"]),
    "another one in a text": lambda ids: ask(f"Cancel the order {ids['given']}!"),
    "another one beside a generated one": lambda ids: tell(id=ids["given"], session=ids["a"]),
    "another one behind a prefix": lambda ids: tell(id=f"order_{ids['given']}"),
    "one used for two": lambda ids: tell(one=ids["a"], two=ids["other"]),
    "two for one": lambda ids: tell(one=ids["a"], two=ids["same"]),
    "two that are swapped": lambda ids: [tell(one=ids["a"], two=ids["b"]), tell(one=ids["first"])],
    "another word": lambda ids: tell(id=ids["a"], word=ids["word"]),
    "another model": lambda ids: ask("Hi", model=ids["model"]),
    "a small number": lambda ids: tell(count=ids["number"]),
    "a generated one for a word": lambda ids: tell(id=ids["turned"]),
    "another day": lambda ids: ask(f"Book it for {ids['day']}."),
    "another day whose digits were drawn": lambda ids: tell(
        day=f"on-{ids['day']}", drawn=random.choice([int(f"77{ids['day'].replace('-', '')}")]) // 10**9
    ),
    "another time of day": lambda ids: ask(f"Meet me at {ids['clock']}."),
    "a time of the past": lambda ids: tell(since=ids["since"]),
    "a digest": lambda ids: tell(digest=ids["digest"]),
    "a digest of another text": lambda ids: tell(digest=hashlib.sha256(ids["word"].encode()).hexdigest()),
    "a digest of another day": lambda ids: tell(digest=hashlib.sha256(ids["day"].encode()).hexdigest()),
    "a UUID of another id": lambda ids: tell(id=str(uuid.uuid5(uuid.NAMESPACE_DNS, ids["given"]))),
    "a number of the past": lambda ids: tell(since=ids["epoch"]),
    "an id of the past": lambda ids: tell(since=ids["aged"]),
    "a snowflake of the past": lambda ids: tell(since=ids["fallen"]),
    "a time in base 36 of the past": lambda ids: tell(since=ids["written"]),
    "a word like a time in base 36": lambda ids: tell(word=ids["eight"]),
}


def _ids(*, is_replayed: bool) -> dict[str, str]:
    a, b = str(uuid.uuid4()), str(uuid.uuid4())
    day = datetime.now(UTC) + (3 * DAY if is_replayed else DAY)
    return {
        "a": a,
        "b": b,
        "other": a if is_replayed else b,
        "same": b if is_replayed else a,
        "first": b if is_replayed else a,
        "given": GIVEN[is_replayed],
        "word": "refund" if is_replayed else "cancel",
        "model": "llama370b" if is_replayed else "mistral7b",
        "number": 4712 if is_replayed else 4711,  # type: ignore[dict-item]
        "turned": uuid.uuid4().hex if is_replayed else "search",
        "day": day.date().isoformat(),
        "clock": "11:17" if is_replayed else "09:43",
        "since": (datetime.now(UTC) - (2 * DAY if is_replayed else DAY)).isoformat(),
        "digest": ("ab12" if is_replayed else "9f4e") * 16,
        "aged": ksuid(age_s=2e5 if is_replayed else 1e5),
        "written": time_36(age_s=2e5 if is_replayed else 1e5),
        "eight": "mountain" if is_replayed else "material",
        "fallen": str(snowflake(age_s=2e5 if is_replayed else 1e5)),
        "epoch": time.time() - (2e5 if is_replayed else 1e5),  # type: ignore[dict-item]
    }


GIVEN = [str(uuid.uuid4()), str(uuid.uuid4())]


@pytest.mark.parametrize("act", DIFFERENT.values(), ids=DIFFERENT.keys())
def test_a_real_difference_is_one(tmp_path: Path, act: Callable[[dict[str, str]], Any]) -> None:
    """However much it looks like a generated name or a time."""
    captured(tmp_path / "run", lambda run: act(_ids(is_replayed=False)))
    with pytest.raises(reenact.Diverged), reenact.replay(tmp_path / "run"):
        act(_ids(is_replayed=True))


def test_a_name_from_an_answer_is_not_renamed(tmp_path: Path) -> None:
    """It was given to both runs alike, so that another is another."""

    @reenact.tool
    def look_up() -> str:
        return str(uuid.uuid4())

    captured(tmp_path / "run", lambda run: tell(id=look_up()))

    def agent(run: reenact.Run) -> None:
        look_up()
        tell(id=str(uuid.uuid4()))

    with pytest.raises(reenact.Diverged), reenact.replay(tmp_path / "run") as run:
        agent(run)


def test_an_inconsistent_renaming_names_both_places(tmp_path: Path) -> None:
    """Where the name was paired first, and where it would be paired anew."""
    captured(tmp_path / "run", lambda run: _say_twice(is_same=True))
    with pytest.raises(reenact.Diverged) as caught, reenact.replay(tmp_path / "run"):
        _say_twice(is_same=False)
    assert "at event 2 $.arguments.session" in str(caught.value)
    assert "and at $.arguments.of" in str(caught.value)


def _say_twice(*, is_same: bool) -> None:
    one, other = str(uuid.uuid4()), str(uuid.uuid4())
    tell(session=one)
    tell(of=one if is_same else other)


def test_only_real_differences_are_told(tmp_path: Path) -> None:
    """A divergence does not name what would have been accepted."""
    captured(tmp_path / "run", lambda run: tell(session=str(uuid.uuid4()), word="cancel"))
    with pytest.raises(reenact.Diverged), reenact.replay(tmp_path / "run") as run:
        tell(session=str(uuid.uuid4()), word="refund")
    assert [place.path for place in run.divergences[0].differences] == ["$.arguments.word"]


def test_the_word_that_differs_is_told(tmp_path: Path) -> None:
    """Where it is behind generated names in a long text, one of which begins as a time does."""
    agent = "I am {} since {}; do what the order says as soon as you can, and tell me about it: {}.".format
    drawn = iter(lambda: str(uuid.uuid4()), "")
    with reenact.capture(tmp_path / "run", sources=()):
        tell(text=agent(next(name for name in drawn if name[:8].isdigit()), datetime.now(UTC), "cancel"))
    with pytest.raises(reenact.Diverged) as caught, reenact.replay(tmp_path / "run"):
        tell(text=agent(next(name for name in drawn if not name[:8].isdigit()), datetime.now(UTC), "refund"))
    assert "(cancel became refund)" in str(caught.value)


NOW: dict[str, Callable[[datetime], Any]] = {
    "ISO": lambda now: now.isoformat(),
    "ISO of Node": lambda now: now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    "ISO without zone": lambda now: now.replace(tzinfo=None).isoformat(sep=" "),
    "RFC 2822": lambda now: formatdate(now.timestamp()),
    "of ctime": lambda now: time.ctime(now.timestamp()),
    "a day": lambda now: now.date().isoformat(),
    "a written day": lambda now: now.strftime("%A, %B %d, %Y"),
    "a day without weekday": lambda now: now.strftime("%B %d, %Y"),
    "a short day": lambda now: now.strftime("%d %b %Y"),
    "a clock": lambda now: now.strftime("%H:%M"),
    "a clock of two halves": lambda now: now.strftime("%I:%M %p"),
    "seconds": lambda now: int(now.timestamp()),
    "seconds and more": lambda now: now.timestamp(),
    "milliseconds": lambda now: int(now.timestamp() * 1000),
    "nanoseconds": lambda now: int(now.timestamp() * 10**9),
    "seconds as text": lambda now: str(int(now.timestamp())),
    "a file's name": lambda now: f"log-{now.strftime('%Y%m%d_%H%M%S')}.txt",
    "beside a name": lambda now: f"chat_{int(now.timestamp() * 1000)}_{uuid.uuid4().hex}",
}


def test_an_id_that_begins_as_a_date_is_none(tmp_path: Path) -> None:
    captured(tmp_path / "run", lambda run: tell(text=f"{uuid.uuid4()} at {datetime.now(UTC)}"))

    def agent(run: reenact.Run) -> None:
        drawn = (str(uuid.uuid4()) for _ in range(10_000))
        tell(text=f"{next(name for name in drawn if name[:8].isdigit())} at {datetime.now(UTC)}")

    replayed(tmp_path / "run", agent)


@pytest.mark.parametrize("tell_time", NOW.values(), ids=NOW.keys())
def test_now_is_now(tmp_path: Path, tell_time: Callable[[datetime], Any]) -> None:
    """A time that was read while the run was recorded, and is read again while it is replayed."""

    def agent(run: reenact.Run) -> None:
        told = tell_time(datetime.now(UTC))
        tell(at=told)
        ask(f"It is {told} now.\nWhat next?", at=[told])

    captured(tmp_path / "run", agent)
    time.sleep(1.1)
    replayed(tmp_path / "run", agent)


def test_a_temporary_folder_is_a_name(tmp_path: Path) -> None:
    """``tempfile`` draws from a generator of its own."""

    def agent(run: reenact.Run) -> None:
        with tempfile.TemporaryDirectory() as folder:
            tell(path=f"{folder}/out.txt")

    captured(tmp_path / "run", agent)
    replayed(tmp_path / "run", agent)


def test_what_mktemp_makes_is_a_name(tmp_path: Path) -> None:
    """Also without a digit in it; not where it was given."""
    captured(tmp_path / "run", lambda run: tell(text="wrote /tmp/tmp.dEf4L43k4z/a.txt"))
    replayed(tmp_path / "run", lambda run: tell(text="wrote /tmp/tmp." + "gSAuPwcISC" + "/a.txt"))
    for other in ("/tmp/tmp.gSAuPwcISC/b.txt", "/tmp/other.gSAuPwcISC/a.txt"):
        with pytest.raises(reenact.Diverged), reenact.replay(tmp_path / "run"):
            tell(text=f"wrote {other}")


def test_a_final_output_may_have_another_name(tmp_path: Path) -> None:
    """It is compared as requests are."""

    def agent(run: reenact.Run) -> None:
        name = str(uuid.uuid4())
        tell(id=name)
        run.final_output = {"id": name, "at": time.time()}

    captured(tmp_path / "run", agent)
    replayed(tmp_path / "run", agent)


def _random_port() -> int:
    return random.choice(range(20000, 30000))


def _drawn_port() -> int:
    return random.randint(30000, 40000)


@pytest.mark.parametrize("choose", [_random_port, _drawn_port])
def test_a_free_port_that_chance_chose_is_a_name(tmp_path: Path, choose: Callable[[], int]) -> None:
    """A library that tries ports by chance gives its server one, whose process is started by its number."""

    def agent(run: reenact.Run) -> None:
        with _bound(choose) as port:
            tell(words=["serve", "--port", str(port)], url=f"http://127.0.0.1:{port}/health")

    captured(tmp_path / "run", agent)
    replayed(tmp_path / "run", agent)


def test_the_next_port_after_one_that_is_taken_is_a_name(tmp_path: Path) -> None:
    def agent(run: reenact.Run) -> None:
        wanted = itertools.count(taken.getsockname()[1])
        with _bound(lambda: next(wanted)) as port:
            tell(words=["serve", "--port", str(port)])

    with _listening() as taken:
        captured(tmp_path / "run", agent)
    with _listening() as taken:
        replayed(tmp_path / "run", agent)


def test_another_port_that_the_program_names_is_another(tmp_path: Path) -> None:
    ports = iter((20001, 20002))

    def agent(run: reenact.Run) -> None:
        with _bound(lambda: next(ports)) as port:
            tell(words=["serve", "--port", str(port)])

    captured(tmp_path / "run", agent)
    with pytest.raises(reenact.Diverged, match="20001"):
        replayed(tmp_path / "run", agent)


@contextmanager
def _bound(choose: Callable[[], int]) -> Iterator[int]:
    """The first port of those chosen that is free, taken for a while."""
    while True:
        port = choose()
        with socket.socket() as tried, suppress(OSError):
            tried.bind(("127.0.0.1", port))
            yield port
            return


@contextmanager
def _listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_a_port_of_the_runs_own_server_is_a_name(tmp_path: Path) -> None:
    """Where it listens; another port of somebody's is another."""

    def agent(run: reenact.Run, port: int | None = None, limit: int = 4000) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = port or server.getsockname()[1]
            tell(bind={"port": port}, url=f"http://127.0.0.1:{port}/callback", port=port, limit=limit)

    captured(tmp_path / "run", agent)
    replayed(tmp_path / "run", agent)
    for changed in ({"port": 9}, {"port": 2049}, {"limit": 4001}):
        with pytest.raises(reenact.Diverged), reenact.replay(tmp_path / "run") as run:
            agent(run, **changed)


@pytest.mark.parametrize("change", [("kettle7", "KETTLE7"), ("kettle7", "kettle 7 of steel")])
def test_of_long_texts_no_more_is_compared_than_differs_first(
    change: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text of many megabytes with changes all over is explained as soon as a short one."""
    looked_at = 0

    class Counting:
        def __init__(self, atoms: Any) -> None:
            self._atoms = atoms

        def finditer(self, text: str) -> Any:
            nonlocal looked_at
            for found in self._atoms.finditer(text):
                looked_at += 1
                yield found

    text = " ".join(f"kettle{number}" for number in range(80_000))
    captured(tmp_path / "run", lambda _: do(text=text))
    for name in ("_ATOMS", "_WORDS"):
        monkeypatch.setattr(renaming, name, Counting(getattr(renaming, name)))
    with pytest.raises(reenact.Diverged, match="kettle7"):
        replayed(tmp_path / "run", lambda _: do(text=text.replace(*change)))
    assert looked_at < 500


@pytest.mark.parametrize("letters", ["a", string.ascii_letters + string.digits])
@pytest.mark.parametrize("change", ["Zz", "!!"])
def test_a_long_word_that_differs_is_no_name(tmp_path: Path, letters: str, change: str) -> None:
    """A picture as base64 is one word of megabytes. A change in its middle is found at once."""
    picture = "".join(random.Random(1).choices(letters, k=1_000_000))
    captured(tmp_path / "run", lambda _: do(picture=picture))
    began = time.process_time()
    with pytest.raises(reenact.Diverged, match="differs"):
        replayed(tmp_path / "run", lambda _: do(picture=picture[:700_000] + change + picture[700_002:]))
    assert time.process_time() - began < 5


def test_a_library_may_draw_many_bytes(tmp_path: Path) -> None:
    """Long draws are no names, and looking for a name among them does not fail."""
    captured(tmp_path / "run", lambda _: do(name="one-77a9a98b"))

    def act(_: reenact.Run) -> None:
        os.urandom(100_000)
        do(name="one-88b0b09c")

    with pytest.raises(reenact.Diverged, match="differs"):
        replayed(tmp_path / "run", act)


def test_the_address_of_an_object_may_be_another(tmp_path: Path) -> None:
    """In a ``repr`` and as a number; memory is used again, so addresses are not paired."""
    kept: list[object] = []

    def agent(run: reenact.Run) -> None:
        kept.extend(object() for _ in range(100))
        one, other = kept[-1], kept[-2]
        do(text=f"call {one!r}, {other!r} or {one!r}", number=id(one), thread=f"{threading.get_ident()}")

    captured(tmp_path / "run", agent)
    with reenact.replay(tmp_path / "run") as run:
        agent(run)
    assert run.divergences == []


@pytest.mark.parametrize(
    ("recorded", "live"),
    [
        ("0x7f0000000010", "0x7f0000000020"),
        ("at 0xdeadbeef0", "at 0xdeadbeef8"),
        ("140000000000016", "140000000000032"),
    ],
)
def test_a_number_that_is_no_address_of_this_process_may_not(
    tmp_path: Path, recorded: str, live: str
) -> None:
    captured(tmp_path / "run", lambda _: do(text=recorded))
    with pytest.raises(reenact.Diverged, match=live.split()[-1]):
        replayed(tmp_path / "run", lambda _: do(text=live))


def test_an_address_that_was_given_may_not_be_another(tmp_path: Path) -> None:
    """An answer told the agent which one to ask for."""
    kept = object(), object()

    def agent(which: object) -> None:
        do(told=f"{kept[0]!r} {kept[1]!r}")
        tell(text=f"about {which!r}")

    captured(tmp_path / "run", lambda _: agent(kept[0]))
    with pytest.raises(reenact.Diverged):
        replayed(tmp_path / "run", lambda _: agent(kept[1]))


PROCESS_AGENT = """
import os, sys, threading, reenact

@reenact.tool
def do(text, number):
    return "done"

sign = int(sys.argv[1])
do(text=f"log-{os.getpid()}.txt of {os.getppid()} in {threading.get_native_id()}", number=os.getpid() + sign)
do(text=f"log-{os.getpid()}.txt, {object()!r} {id(sys):x} {id(os)}", number=os.getppid())
"""


def leave_small_numbers() -> None:
    """Start processes until their numbers have four digits: at its highest the system begins anew."""
    while True:
        done = subprocess.Popen(["true"])
        done.wait()
        if done.pid >= 1000:
            return


def test_the_number_of_the_process_may_be_another(tmp_path: Path) -> None:
    """And only that: a number beside it differs."""
    (tmp_path / "agent.py").write_text(PROCESS_AGENT)
    python = sys.executable
    leave_small_numbers()
    done = run("record", "-o", "a", "--", python, "agent.py", "0", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run("replay", "a", "--", python, "agent.py", "0", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "generated name" in done.stderr
    done = run("replay", "a", "--", python, "agent.py", "-7", cwd=tmp_path)
    assert done.returncode == 1, done.stderr


OWN_NAMESPACE = ("unshare", "--user", "--map-root-user", "--fork", "--pid", "--mount-proc")
SMALL_PROCESS_AGENT = """
import multiprocessing, os, sys, reenact

@reenact.tool
def do(text, number):
    return "done"

def tell():
    do(text=f"child-{os.getpid()} of {os.getppid()}", number=int(sys.argv[1]))

if __name__ == "__main__":
    do(text=f"log-{os.getpid()}.txt of {os.getppid()}", number=os.getpid())
    child = multiprocessing.get_context("fork").Process(target=tell)
    child.start()
    child.join()
    do(text=f"{child.pid} has ended", number=os.getpid())
"""


@pytest.mark.skipif(
    subprocess.run([*OWN_NAMESPACE, "true"], capture_output=True, check=False).returncode != 0,
    reason="no process namespaces here",
)
def test_the_small_numbers_of_processes_in_a_container_may_be_others(tmp_path: Path) -> None:
    """They are known on both sides, so they need not look like numbers of processes; other numbers differ."""
    (tmp_path / "agent.py").write_text(SMALL_PROCESS_AGENT)
    python = sys.executable
    recorded = [*OWN_NAMESPACE, python, "-m", "reenact", "record", "-o", "a", "--", python, "agent.py", "3"]
    subprocess.run(recorded, cwd=tmp_path, check=True, timeout=60)
    again = f"true; true; true; {python} -m reenact replay a -- {python} agent.py"
    for number, status in (("3", 0), ("4", 1)):
        words = [*OWN_NAMESPACE, "sh", "-c", f"{again} {number}; exit $?"]
        assert subprocess.run(words, cwd=tmp_path, check=False, timeout=60).returncode == status
    done = run("replay", "a", "--", python, "agent.py", "3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


WORDS_OF_PEOPLE = [
    ("getWeatherNow", "getOrdersNow"),
    ("iPhoneProMax", "iPhoneProMin"),
    ("listTaskDefinition", "listTaskDefaultion"),
    ("ActivityListItem", "LocationListItem"),
    ("RuleAzureSandbox", "RuleOtherSandbox"),
    ("refund", "cancel"),
    ("stringlist", "scriptlist"),
]
MADE_BY_PROGRAMS = [
    ("k3j9x2qf0a", "p0v8sd71rb"),  # Math.random().toString(36).slice(2)
    ("0gxkqvbnm4z", "x7rtpwsdfgk"),  # with few digits
    ("V1StGXR8Z5jdHi6B", "Uakgb3J5m9g0JDMb"),
    ("dQxWkTzRbLmNvPcY", "hGfDsKjLqWrTzXcV"),
    ("a81bc9d20e", "0fe1d2c3b4"),
]


def _differ_by_form(one: str, other: str) -> None:
    """Compare two texts with these names as requests of a program in which no chance is watched."""
    facts = renaming.Facts(
        seq=1,
        there=Window(0, 1),
        here=Window(0, 1),
        evidence=RunEvidence("any", places={}),
        is_known_there=lambda _: False,
        is_known_here=lambda _: False,
        places=Places({}, {}, b""),
    )
    renaming.compare(f"Do {one}.", f"Do {other}.", renaming.RenamedNames(), facts)


@pytest.mark.parametrize(("one", "other"), WORDS_OF_PEOPLE)
def test_words_that_are_written_together_are_no_name(one: str, other: str) -> None:
    """By its form: the functions and products that people name have capitals and digits too."""
    with pytest.raises(renaming.Unlike):
        _differ_by_form(one, other)


@pytest.mark.parametrize(("one", "other"), MADE_BY_PROGRAMS)
def test_letters_without_order_are_a_name(one: str, other: str) -> None:
    _differ_by_form(one, other)

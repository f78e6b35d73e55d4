"""Sessions of opencode: what ``opencode export`` writes, its database, and the folder of earlier versions.

A session that another one began, for a subagent, is a lane of that one. In the newer table
``session_message``, a message has all its content in one row.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from functools import partial
from heapq import merge
from pathlib import Path
from struct import unpack_from
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec

from reenact.canonical import JsonValue
from reenact.errors import FormatError
from reenact.importers.building import (
    KnownFields,
    Line,
    RunBuilder,
    ToolRequest,
    iso_ms,
    kind_of,
    text_of,
    usage_counts,
)
from reenact.importers.importing import Importer, Runs
from reenact.importers.known_ids import KnownIds
from reenact.importers.source import (
    ForeignSource,
    JsonObject,
    Losses,
    expect_object,
    read_value,
    type_mismatch,
)
from reenact.importers.turns import TranscriptTurns

_ROLES: Final = ("user", "system", "assistant")
_TOP: Final = frozenset({"info", "messages"})
_MESSAGE: Final = frozenset({"info", "parts"})
_TOKENS: Final = KnownFields("input", "output", "reasoning", "total", cache=KnownFields("read", "write"))
_INFO: Final = KnownFields(
    "id", "sessionID", "role", "parentID", "mode", "agent", "cost", "modelID", "providerID", "finish",
    "system", "variant", time=KnownFields("created", "completed"), path=KnownFields("cwd", "root"),
    model=KnownFields("providerID", "modelID", "variant"), tokens=_TOKENS, summary=None, error=None,
    tools=None, structured=None, format=None,
)  # fmt: skip
_PARTS: Final = frozenset({
    "text", "reasoning", "tool", "step-start", "step-finish", "file", "snapshot", "patch", "agent", "subtask",
    "compaction", "retry",
})  # fmt: skip
_PART: Final = KnownFields(
    "id", "sessionID", "messageID", "type", "text", "synthetic", "ignored", "tool", "callID", "state",
    "snapshot", "reason", "cost", "tokens", "mime", "filename", "url", "hash", "name", "prompt",
    "description", "agent", "auto", "attempt", "command", time=KnownFields("start", "end", "created"),
    metadata=None, source=None, files=None, error=None, model=None,
)  # fmt: skip
_STATE: Final = KnownFields(
    "status", "input", "output", "title", "error", "raw", time=KnownFields("start", "end", "compacted"),
    metadata=None, attachments=None,
)  # fmt: skip
_USAGE: Final = {"input": "inputTokens", "output": "outputTokens", "reasoning": "reasoningTokens"}


_NEWER_STATE: Final = KnownFields(
    "status", "input", "content", error=KnownFields("type", "message"), structured=None, result=None,
    attachments=None, outputPaths=None,
)  # fmt: skip
_NEWER_CONTENT: Final = KnownFields(
    "type", "id", "text", "name", time=KnownFields("created", "ran", "completed", "pruned"),
    state=_NEWER_STATE, provider=None, providerMetadata=None,
)  # fmt: skip
_NEWER_MESSAGE: Final = KnownFields(
    "id", "type", "text", "agent", "files", "agents", "finish", "cost", "error", "command", "output",
    "callID", "summary", "recent", "reason", "sessionID", "description",
    time=KnownFields("created", "completed"), model=KnownFields("id", "providerID", "variant"),
    tokens=_TOKENS, content=_NEWER_CONTENT, snapshot=None, metadata=None,
)  # fmt: skip
_SPOKEN: Final = {"user": "text", "system": "text", "synthetic": "text", "compaction": "summary"}
"""The member of a newer message that was said to the model, by the type of the message."""
_SWITCHES: Final = ("agent-switched", "model-switched")

_SQLITE: Final = b"SQLite format 3\x00"
_TABLES: Final = frozenset({"session", "message", "part"})
_NEWER_TABLES: Final = frozenset({"session", "session_message"})
_FOLDERS: Final = (("session", "message", "part"), ("session/info", "session/message", "session/part"))
"""The folders of a storage: of the later versions, and of the early ones."""
_ALL_OF_A_SESSION: Final = (
    "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id",
    "SELECT id, data FROM part WHERE message_id = ? ORDER BY id",
)
_NEWER_MESSAGES: Final = (
    "SELECT id, type, data FROM session_message WHERE session_id = ? ORDER BY time_created, rowid"
)


def _recognises(source: ForeignSource) -> bool:
    if source.is_folder:
        return any(all((source.path / name).is_dir() for name in names) for names in _FOLDERS)
    if source.head.startswith(_SQLITE):
        return _is_database(source.path)
    return source.head.lstrip().startswith(b"{") and source.has("info", "messages", "directory", "projectID")


def _is_database(path: Path) -> bool:
    with suppress(sqlite3.Error), closing(_open(path)) as database:
        found = _tables_of(database)
        return found >= _TABLES or found >= _NEWER_TABLES
    return False


def _tables_of(database: sqlite3.Connection) -> set[str]:
    return {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _open(path: Path) -> sqlite3.Connection:
    """Open a database for reading, with what another process has not yet merged into it."""
    place = f"file:{quote(str(path.absolute()))}"
    try:
        database = sqlite3.connect(f"{place}?mode=ro", uri=True)
        database.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:  # its folder cannot be written
        database = sqlite3.connect(f"{place}?immutable=1", uri=True)
    database.text_factory = partial(str, encoding="utf-8", errors="replace")
    return database


def _read(source: ForeignSource, runs: Runs) -> None:
    if source.is_folder:
        for below in {name for names in _FOLDERS for name in names}:
            for file in source.find_beside(f"{below}/**/*.json"):
                source.compute_digest(file)
        source.is_read = True
        _read_sessions(_Folder(source), runs, source)
    elif source.head.startswith(_SQLITE):
        with source.stream() as stream:
            stream.read(1)  # for its digest
        try:
            with closing(_open(source.path)) as database:
                _read_sessions(_Database(source, database), runs, source)
        except sqlite3.Error as error:
            runs.note_loss(f"the rest cannot be read: {error}")
    else:
        _read_export(source, runs)


def _read_export(source: ForeignSource, runs: Runs) -> None:
    lost: Losses = []
    document = source.document(lost)
    messages = document.get("messages") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(messages, list):
        raise FormatError("expected an object with messages", file=source.name)
    run = runs.open()
    for reason, line in lost:
        run.note_loss(reason, line)
    run.check_fields("", document, _TOP)
    numbered = (
        (f"message {number}", partial(source.line_of, ("messages",), number), message)
        for number, message in enumerate(messages, 1)
    )
    _import_session(run, [_Lane("0", document.get("info"), numbered)])


_Messages = Iterable[tuple[str, Line, JsonValue]]
"""The messages of a session: what each is called in a loss, its line, and the message."""


class _Lane(NamedTuple):
    name: str
    info: JsonValue
    messages: _Messages


class _Piece(NamedTuple):
    """A part of a message that is imported at its time, between those of other lanes."""

    time_ms: float
    what: str
    line: Line
    take: Callable[[], None]


def _import_session(run: RunBuilder, lanes: list[_Lane]) -> None:
    run.note_missing("requests as they were sent", "instructions and tools of the model")
    turns = TranscriptTurns(run)
    infos = {lane.name: lane.info for lane in lanes}

    def begin(name: str) -> None:
        info = infos.pop(name)
        if name != "0":
            turns.begin_aside(name)
        run.note("session", info, time_ms=_time(run, info, "created"), lane=name)

    begin("0")
    in_order = merge(*(_pieces(run, turns, lane) for lane in lanes), key=lambda each: each[1].time_ms)
    for name, piece in in_order:
        if name in infos:
            begin(name)
        run.attempt(piece.line, piece.take, what=piece.what)
    for name in list(infos):
        begin(name)
    turns.finish()


def _pieces(run: RunBuilder, turns: TranscriptTurns, lane: _Lane) -> Iterator[tuple[str, _Piece]]:
    """The pieces of a session, whose times do not run backwards."""
    time_ms = 0.0
    for what, line, message in lane.messages:
        found: list[_Piece] = []
        is_newer = isinstance(message, dict) and "type" in message and "info" not in message
        split = _split_newer_message if is_newer else _split_message
        run.attempt(line, split, run, turns, message, line, lane.name, what, found, what=what)
        for piece in found:
            time_ms = max(time_ms, piece.time_ms)
            yield lane.name, piece._replace(time_ms=time_ms)


class _Folder:
    """The files of versions before the database: one for each session, message and part."""

    def __init__(self, source: ForeignSource) -> None:
        self._source = source
        self.lost: list[str] = []

    def sessions(self) -> Iterator[JsonObject]:
        for below in self._source.find_beside("session/**/*.json"):
            parts = Path(below).parts
            if parts[1] not in ("message", "part") and (info := self._value(below)) is not None:
                yield info

    def messages(self, session: str) -> _Messages:
        for place in ("message", "session/message"):
            for below in self._source.find_beside(f"{place}/{quote(session, safe='')}/*.json"):
                if (info := self._value(below)) is not None:
                    own = str(info.get("id"))
                    inner = [f"part/{own}", f"session/part/{session}/{own}"]
                    files = [
                        each for folder in inner for each in self._source.find_beside(f"{folder}/*.json")
                    ]
                    parts: list[JsonValue] = [
                        part for each in files if (part := self._value(each)) is not None
                    ]
                    yield below, None, {"info": info, "parts": parts}

    def _value(self, below: str) -> JsonObject | None:
        try:
            return expect_object("the file", read_value(self._source.read(below)))
        except (ValueError, FormatError) as error:
            self.lost.append(f"{below} cannot be read: {error}")
            return None


def _is_cut_off(source: ForeignSource) -> bool:
    """Whether the file is shorter than its header says: the size of a page, and their number."""
    [page_bytes], [pages] = unpack_from(">H", source.head, 16), unpack_from(">I", source.head, 28)
    size_bytes: int = (page_bytes if page_bytes > 1 else 65_536) * pages
    return source.path.stat().st_size < size_bytes


class _Database:
    """The tables of the current versions."""

    def __init__(self, source: ForeignSource, database: sqlite3.Connection) -> None:
        self._database = database
        self._tables = _tables_of(database)
        self.lost = ["the database was cut off"] if _is_cut_off(source) else []

    def sessions(self) -> Iterator[JsonObject]:
        rows = self._database.execute("SELECT * FROM session ORDER BY time_created, id")
        names = [column[0] for column in rows.description]
        for row in rows.fetchall():
            fields = {name: value for name, value in zip(names, row, strict=True) if value is not None}
            time = {"created": fields.pop("time_created", None), "updated": fields.pop("time_updated", None)}
            yield {**fields, "parentID": fields.pop("parent_id", None), "time": time}

    def messages(self, session: str) -> _Messages:
        """Those of the older tables, and then those with which the session went on in the newer one."""
        told = KnownIds()
        for each in self._older_messages(session) if self._tables >= _TABLES else ():
            told[each[0]] = ""
            yield each
        newer = self._tables >= _NEWER_TABLES
        for own, kind, data in self._database.execute(_NEWER_MESSAGES, (session,)) if newer else ():
            what = f"message {own}"
            message = None if what in told else self._value(what, data)
            if message is not None:
                yield what, None, {**message, "id": own, "type": kind}

    def _older_messages(self, session: str) -> _Messages:
        messages, parts = _ALL_OF_A_SESSION
        for own, data in self._database.execute(messages, (session,)):
            info = self._value(f"message {own}", data)
            if info is not None:
                rows = self._database.execute(parts, (own,)).fetchall()
                told = [(part, self._value(f"part {part}", inner)) for part, inner in rows]
                found: list[JsonValue] = [{**each, "id": part} for part, each in told if each is not None]
                yield f"message {own}", None, {"info": {**info, "id": own}, "parts": found}

    def _value(self, what: str, data: object) -> JsonObject | None:
        text = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
        try:
            return expect_object("it", read_value(text if isinstance(text, bytes) else b""))
        except ValueError as error:
            self.lost.append(f"{what} cannot be read: {error}")
            return None


def _read_sessions(stored: _Folder | _Database, runs: Runs, source: ForeignSource) -> None:
    """Import each session that no other one began, with those that it began."""
    infos = {str(info.get("id")): info for info in stored.sessions()}
    below: dict[str, list[str]] = {}
    roots: list[str] = []
    for own, info in infos.items():
        parent = info.get("parentID")
        if isinstance(parent, str) and parent in infos and not _is_circular(infos, own):
            below.setdefault(parent, []).append(own)
        else:
            roots.append(own)

    def lanes(own: str, name: str) -> Iterator[_Lane]:
        yield _Lane(name, infos[own], stored.messages(own))
        for number, child in enumerate(below.get(own, ())):
            yield from lanes(child, f"{name}.{number}")

    for root in roots:
        run = runs.open(root, started_ms=_created_ms(infos[root]))
        parent = infos[root].get("parentID")
        if isinstance(parent, str):
            what = "was begun by itself" if parent in infos else "is missing"
            run.note_loss(f"the session that began it {what}: {parent}")
        _import_session(run, list(lanes(root, "0")))
        for reason in stored.lost:
            run.note_loss(reason)
        stored.lost.clear()
    if not roots:
        raise FormatError("it holds no session", file=source.name)


def _is_circular(infos: dict[str, JsonObject], own: str) -> bool:
    """Whether the sessions that began it, one by the other, come back to one of them."""
    seen: set[str] = set()
    place: JsonValue = own
    while isinstance(place, str) and place in infos:
        if place in seen:
            return True
        seen.add(place)
        place = infos[place].get("parentID")
    return False


def _created_ms(info: JsonObject) -> float | None:
    time = info.get("time")
    return iso_ms(time.get("created")) if isinstance(time, dict) else None


def _time(run: RunBuilder, info: JsonValue, name: str) -> float | None:
    time = info.get("time") if isinstance(info, dict) else None
    return run.time_ms(time.get(name)) if isinstance(time, dict) else None


def _split_message(
    run: RunBuilder,
    turns: TranscriptTurns,
    message: JsonObject,
    line: Line,
    lane: str,
    what: str,
    pieces: list[_Piece],
) -> None:
    """Add what a message says to *pieces*: its text, or each answer and the results of its tools."""
    run.check_fields("message", message, _MESSAGE)
    info = expect_object("info", message.get("info"))
    run.check_fields("info", info, _INFO)
    parts = []
    for part in run.objects("parts", message.get("parts"), line):
        if part.get("type") == "tool" and not isinstance(part.get("state"), dict):
            run.note_loss(f"{what}: {type_mismatch('part.state', 'an object', part.get('state'))}", line)
            continue
        parts.append(part)
        if kind_of(part) not in _PARTS:
            run.count_unknown("part", [kind_of(part)])
        run.check_fields("part", part, _PART)
        for name, known in (("state", _STATE), ("tokens", _TOKENS)):
            if isinstance(inner := part.get(name), dict):
                run.check_fields(name, inner, known)
    if info.get("role") not in _ROLES:
        run.count_unknown("info", [f"role={info.get('role')}"])
    created_ms = _time(run, info, "created")
    if info.get("role") not in ("user", "system"):
        for time_ms, take in _split_answer(run, turns, info, parts, created_ms, line, lane):
            pieces.append(_Piece(time_ms or 0.0, what, line, take))
        return
    texts = [part for part in parts if part.get("type") == "text"]
    others = [part for part in parts if part.get("type") != "text"]
    text = "\n".join(str(part.get("text") or "") for part in texts)
    said: JsonValue = [{"type": "text", "text": text}, *others] if others else text
    take = partial(turns.say, str(info.get("role")), said, created_ms, lane)
    pieces.append(_Piece(created_ms or 0.0, what, line, take))


def _split_newer_message(
    run: RunBuilder,
    turns: TranscriptTurns,
    message: JsonObject,
    line: Line,
    lane: str,
    what: str,
    pieces: list[_Piece],
) -> None:
    """The same for a message of the newer table; what is no part of the conversation becomes a note."""
    run.check_fields("message", message, _NEWER_MESSAGE)
    kind = kind_of(message)
    if kind in ("assistant", "shell", *_SPOKEN):
        _split_message(run, turns, _older_form(run, message), line, lane, what, pieces)
        return
    if kind not in _SWITCHES:
        run.count_unknown("message", [f"type={kind}"])
    time_ms = _time(run, message, "created")
    take = partial(run.note, kind, message, time_ms=time_ms, lane=lane)
    pieces.append(_Piece(time_ms or 0.0, what, line, take))


def _older_form(run: RunBuilder, message: JsonObject) -> JsonObject:
    """A message of the newer table in the form of the older ones: its facts, and its parts."""
    kind, model = str(message.get("type")), message.get("model")
    model = model if isinstance(model, dict) else {}
    role = kind if kind in ("assistant", "system") else "user"
    named = ("id", "agent", "time", "finish", "tokens", "cost", "error")
    info: JsonObject = {name: message[name] for name in named if name in message}
    info |= {"role": role, "modelID": model.get("id"), "providerID": model.get("providerID")}
    if kind == "assistant":
        parts = [_older_part(part) for part in run.objects("content", message.get("content"))]
        return {"info": info, "parts": [*parts]}
    said = message.get(_SPOKEN.get(kind, "command"))
    text = f"Ran `{said}`\n{message.get('output')}" if kind == "shell" else said
    files = [
        {"type": "file", "url": file.get("uri"), "mime": file.get("mime"), "filename": file.get("name")}
        for file in run.objects("files", message.get("files"))
    ]
    agents = [
        {"type": "agent", "name": each.get("name")} for each in run.objects("agents", message.get("agents"))
    ]
    return {"info": info, "parts": [{"type": "text", "text": text}, *files, *agents]}


def _older_part(part: JsonObject) -> JsonObject:
    state, time = part.get("state"), part.get("time")
    if part.get("type") != "tool" or not isinstance(state, dict):
        return {name: part.get(name) for name in ("type", "id", "text")}
    time = time if isinstance(time, dict) else {}
    content, failed = state.get("content"), state.get("error")
    is_text = isinstance(content, list) and all(
        kind_of(each) == "text" for each in content if isinstance(each, dict)
    )
    told: JsonObject = {
        "status": state.get("status"),
        "input": state.get("input"),
        "output": text_of(content) if is_text else content,
        "error": failed.get("message") if isinstance(failed, dict) else failed,
        "time": {"start": time.get("ran") or time.get("created"), "end": time.get("completed")},
    }
    return {"type": "tool", "callID": part.get("id"), "tool": part.get("name"), "state": told}


def _split_answer(
    run: RunBuilder,
    turns: TranscriptTurns,
    info: JsonObject,
    parts: list[JsonObject],
    created_ms: float | None,
    line: Line,
    lane: str,
) -> Iterator[tuple[float | None, Callable[[], None]]]:
    steps, completed_ms = _steps(parts), _time(run, info, "completed")
    failed = info.get("error")
    for number, step in enumerate(steps):
        is_last = number == len(steps) - 1
        finished = next((part for part in step if part.get("type") == "step-finish"), {})
        tokens = finished.get("tokens", info.get("tokens") if len(steps) == 1 else None)
        tools = [part for part in step if part.get("type") == "tool"]
        started_ms = next(filter(None, (_time(run, _state_of(part), "start") for part in tools)), None)
        take = partial(
            turns.answer,
            f"{info.get('id')}-{number}",
            text="\n".join(str(part.get("text") or "") for part in step if part.get("type") == "text"),
            reasoning="\n".join(
                str(part.get("text") or "") for part in step if part.get("type") == "reasoning"
            ),
            tools=[_tool_of(part, line) for part in tools],
            provider=str(info.get("providerID") or "unknown"),
            model=info.get("modelID"),
            usage=_usage_of(tokens),
            stop_reason=finished.get("reason") or (info.get("finish") if is_last else None),
            error=_error_of(failed) if failed and is_last else None,
            time_ms=started_ms or (completed_ms if is_last else None) or created_ms,
            lane=lane,
        )
        yield created_ms, take
        for part in tools:
            if (result := _result_of(run, turns, part, line, lane)) is not None:
                yield result


def _steps(parts: list[JsonObject]) -> list[list[JsonObject]]:
    """The parts of each answer of the model; a message without step marks is one answer."""
    steps: list[list[JsonObject]] = [[]]
    for part in parts:
        if part.get("type") == "step-start" and steps[-1]:
            steps.append([])
        steps[-1].append(part)
    return steps


def _tool_of(part: JsonObject, line: Line) -> ToolRequest:
    return ToolRequest(str(part.get("tool")), _state_of(part).get("input"), str(part.get("callID")), line)


def _state_of(part: JsonObject) -> JsonObject:
    return expect_object("part.state", part.get("state"))


def _result_of(
    run: RunBuilder, turns: TranscriptTurns, part: JsonObject, line: Line, lane: str
) -> tuple[float | None, Callable[[], None]] | None:
    state = _state_of(part)
    status = state.get("status")
    if status not in ("completed", "error"):
        return None
    is_error = status == "error"
    result = state.get("error" if is_error else "output")
    time_ms = _time(run, state, "end")
    own = str(part.get("callID"))
    return time_ms, partial(
        turns.result, own, result, is_error=is_error, time_ms=time_ms, line=line, lane=lane
    )


def _error_of(failed: JsonValue) -> str:
    return failed if isinstance(failed, str) else msgspec.json.encode(failed).decode()


def _usage_of(tokens: JsonValue) -> JsonObject | None:
    counts = usage_counts(tokens, _USAGE) or {}
    cache = tokens.get("cache") if isinstance(tokens, dict) else None
    cached = usage_counts(cache, {"read": "cachedInputTokens", "write": "cacheWriteTokens"})
    return counts | (cached or {}) or None


IMPORTER: Final = Importer(
    name="opencode",
    title="sessions of opencode",
    version=1,
    fidelity="tools",
    recognises=_recognises,
    read=_read,
    reads_folders=True,
)

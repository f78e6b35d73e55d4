"""REPLAY.jsonl v1: what is read, what is refused, what comes back."""

import io
import json
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact import canonical
from reenact.errors import FormatError, UnknownVersion, UsageError
from reenact.formats.dialects import DIALECTS, UnknownEvent, current, legacy
from reenact.formats.lines import Line
from reenact.formats.record import ABSENT
from reenact.formats.replay_log import ReplayReader, ReplayWriter, is_same_f32, read_replay_log

from .replay_log_strategies import of_kind, patient

GOLDEN = Path(__file__).parents[1] / "golden" / "replay_log"
CURRENT = (GOLDEN / "current.jsonl").read_bytes()
LEGACY = (GOLDEN / "legacy.jsonl").read_bytes()
HEADER = CURRENT.splitlines(keepends=True)[0]


def events_of(data: bytes, **options) -> list:
    return [event for _, event in read_replay_log(io.BytesIO(data), file="log", **options)]


def written(events: list, dialect: str) -> bytes:
    stream = io.BytesIO()
    writer = ReplayWriter(stream, dialect)
    for event in events:
        writer.emit(event)
    return stream.getvalue()


def reader_of(data: bytes, **options) -> ReplayReader:
    return ReplayReader(lambda: io.BytesIO(data), **options)


# What the format's two documents show, with the values they leave out filled in.
EXAMPLES = {
    "header": '{"type":"ReplayHeader","replay_version":1,"producer":"openagents",'
    '"created_at":"2026-02-15T00:00:00.000Z"}',
    "session start": '{"type":"SessionStart","ts":"2026-02-15T00:00:01.000Z","session_id":"s",'
    '"policy_bundle_id":"p"}',
    "tool call": r'{"type":"ToolCall","ts":"2026-02-15T00:00:02.000Z","session_id":"s","step_id":"1",'
    r'"tool":"shell_command","params":{"command":"rg -n \"foo\" ."},'
    r'"params_hash":"sha256:51ea2ba88c71f0195ef811cbfd674b4c273f471849e26aab97e07ba68eee5095"}',
    "tool result": '{"type":"ToolResult","ts":"2026-02-15T00:00:03.000Z","session_id":"s","step_id":"1",'
    '"ok":true,'
    '"output_hash":"sha256:5ffedee05d6fc46aa060d310e13f0b17cbc2da6afa0712d2428b4e45ee0e7395",'
    '"latency_ms":123,"side_effects":["fs_read"]}',
    "verification": '{"type":"Verification","ts":"2026-02-15T00:00:10.000Z","session_id":"s",'
    '"command":"cd apps/openagents.com && composer lint","cwd":"apps/openagents.com","exit_code":0,'
    '"duration_ms":12345,"verification_delta":0}',
    "session end": '{"type":"SessionEnd","ts":"2026-02-15T00:01:00.000Z","session_id":"s",'
    '"status":"cancelled","confidence":0.0}',
}


@pytest.mark.parametrize("text", EXAMPLES.values(), ids=EXAMPLES)
def test_reads_each_documented_event(text):
    """Every example event is read as its own type and written back with the same values."""
    value = json.loads(text)
    event = current.DIALECT.from_bytes(text.encode())
    assert type(event).__name__ == value["type"]
    assert json.loads(current.DIALECT.to_bytes(event)) == value


def test_reads_the_documented_legacy_log():
    """The example log of the legacy document, keys out of order as printed there, has these eight events."""
    events = events_of((GOLDEN / "legacy-unsorted.jsonl").read_bytes())
    assert [type(event) for event in events] == [
        legacy.ReplayHeader,
        legacy.SessionStart,
        legacy.PlanStart,
        legacy.ToolCall,
        legacy.ToolResult,
        legacy.StepComplete,
        legacy.Verification,
        legacy.SessionEnd,
    ]
    assert events == events_of(LEGACY)


def test_a_value_that_is_absent_is_not_null():
    """Absent and null are distinguished, and each is written as it was read."""
    text = (
        b'{"event":"ToolResult","id":"a","latency_ms":1,"output_hash":"h","step_utility":0,'
        b'"t":"2026-01-01T00:00:00Z"}'
    )
    absent = legacy.DIALECT.from_bytes(text)
    null = legacy.DIALECT.from_bytes(text.replace(b'"id"', b'"exit_code":null,"id"'))
    assert (absent.exit_code, null.exit_code) == (ABSENT, None)
    assert b"exit_code" not in legacy.DIALECT.to_bytes(absent)
    assert b'"exit_code":null' in legacy.DIALECT.to_bytes(null)


@pytest.mark.parametrize("name", ["current", "legacy", "current-published", "current-unknown"])
def test_golden_log_is_written_back_byte_for_byte(name):
    """A canonical log survives reading and writing unchanged, unknown events and fields included."""
    data = (GOLDEN / f"{name}.jsonl").read_bytes()
    assert written(events_of(data), name.partition("-")[0]) == data


def test_byte_order_mark_windows_line_ends_and_blank_lines_are_tolerated():
    """A log that went through a Windows editor holds the same events, on the lines an editor counts."""
    data = (GOLDEN / "current-windows.jsonl").read_bytes()
    read = list(read_replay_log(io.BytesIO(data), file="log"))
    assert [event for _, event in read] == events_of(CURRENT)[:4]
    assert [line.number for line, _ in read] == [1, 3, 5, 7]
    assert all(data[line.offset :].startswith(line.text) for line, _ in read)


def test_unknown_events_and_fields_are_kept():
    """What this version does not know is there for whoever does."""
    header, start, unknown, result = events_of((GOLDEN / "current-unknown.jsonl").read_bytes())
    assert header.extra == {"build": "9c1"}
    assert start.repo.extra == {"fork": True}
    assert isinstance(unknown, UnknownEvent)
    assert unknown.value["payload"] == {"a": [1, 2.0, None]}
    assert result.error.extra == {"cause": {"code": 7}}


def test_no_field_name_is_special():
    """The name under which records keep unknown fields is an unknown field like any other."""
    value = {"type": "SessionEnd", "status": "success", "confidence": 1, "\u2061extra": {"ts": "x"}}
    event = current.DIALECT.from_bytes(canonical.encode(value))
    assert event.extra == {"\u2061extra": {"ts": "x"}}
    assert current.DIALECT.to_json(event) == value


@patient
@given(
    st.data(),
    st.sampled_from(
        [("current", kind) for kind in current.DIALECT.kind.__args__]
        + [("legacy", kind) for kind in legacy.DIALECT.kind.__args__]
    ),
)
def test_reading_undoes_writing(data, case):
    """Every event, with unknown fields at every level, comes back equal and in the same bytes."""
    name, kind = case
    value = data.draw(of_kind(kind))
    event = DIALECTS[name].from_json(value)
    assert isinstance(event, kind)
    text = DIALECTS[name].to_bytes(event)
    assert DIALECTS[name].from_bytes(text) == event
    assert text == canonical.encode(value)


DEEP = (
    b'{"type":"ToolCall","step_id":"1","tool":"t","params_hash":"h","params":'
    + b'{"a":' * 10_000
    + b"0"
    + b"}" * 10_001
)
BAD_LOGS = {
    "empty": (b"", 1, None, "the first line must be a ReplayHeader"),
    "only blank lines": (b"\n  \n\r\n", 1, None, "the first line must be a ReplayHeader"),
    "binary": (b"\x00\x01\xff\xfe", 1, None, "not UTF-8 at byte 2"),
    "not JSON": (b"hello\n", 1, None, "not JSON"),
    "an array": (b"[]\n", 1, "$", "not an event"),
    "nameless header": (b'{"replay_version":1}\n', 1, "$", "neither `type` (current) nor `event` (legacy)"),
    "truncated": (HEADER + b'{"type":"ToolCall","step', 2, None, "not JSON"),
    "header missing": (CURRENT[len(HEADER) :], 1, None, "the first line must be a ReplayHeader"),
    "header not first": (b'{"type":"Other"}\n' + HEADER, 1, None, "the first line must be a ReplayHeader"),
    "header twice": (HEADER + HEADER, 2, None, "a second ReplayHeader"),
    "other dialect": (HEADER + LEGACY, 2, "$.type", "required, but missing"),
    "no version": (b'{"type":"ReplayHeader"}', 1, "$.replay_version", "replay_version is missing"),
    "version as text": (HEADER.replace(b":1,", b':"1",'), 1, "$.replay_version", "must be an integer"),
    "field missing": (
        HEADER + b'{"type":"ToolCall","step_id":"1","tool":"t"}',
        2,
        "$.params_hash",
        "required",
    ),
    "wrong type": (
        HEADER + b'{"type":"ToolCall","step_id":1,"tool":"t","params_hash":""}',
        2,
        "$.step_id",
        "`str`",
    ),
    "wrong type below": (
        HEADER
        + b'{"type":"ToolResult","step_id":"1","ok":true,"output_hash":"","latency_ms":1,"side_effects":[1]}',
        2,
        "$.side_effects[0]",
        "expected `str`",
    ),
    "unknown status": (HEADER + b'{"type":"SessionEnd","confidence":1,"status":"ok"}', 2, "$.status", "'ok'"),
    "confidence above 1": (
        HEADER + b'{"type":"SessionEnd","confidence":1.5,"status":"success"}',
        2,
        "$.confidence",
        "<= 1",
    ),
    "time without zone": (
        HEADER + b'{"type":"SessionEnd","confidence":1,"status":"success","ts":"2026-02-15T00:00:00"}',
        2,
        "$.ts",
        "not an RFC 3339 time",
    ),
    "bad time, canonical": (CURRENT.replace(b"00:00:10", b"00:60:10"), 7, "$.ts", "not an RFC 3339 time"),
    "header time": (HEADER.replace(b"02-15", b"02-30"), 1, "$.created_at", "not an RFC 3339 time"),
    "duplicate key": (HEADER + b'{"type":"X","type":"X"}', 2, "$", "'type' appears twice"),
    "duplicate key below": (HEADER + b'{"type":"X","a":[{"b":1,"b":1}]}', 2, "$.a[0]", "'b' appears twice"),
    "duplicate key in params": (
        HEADER + b'{"params":{"a":1,"a":1},"params_hash":"h","step_id":"1","tool":"t","type":"ToolCall"}',
        2,
        "$.params",
        "'a' appears twice",
    ),
    "invalid UTF-8": (HEADER + b'{"type":"\xff"}', 2, None, "not UTF-8 at byte 9"),
    "lone surrogate": (HEADER + b'{"type":"\\ud800"}', 2, "$.type", "surrogate"),
    "not a number": (HEADER + b'{"type":"X","a":NaN}', 2, None, "NaN"),
    "integer beyond 64 bits": (HEADER + b'{"type":"X","a":[%d]}' % 2**64, 2, "$.a[0]", "64 bits"),
    "nested 10,000 deep": (HEADER + DEEP, 2, None, "nested deeper than 254 levels"),
}


@pytest.mark.parametrize(("data", "line", "json_path", "reason"), BAD_LOGS.values(), ids=BAD_LOGS)
def test_bad_log_is_refused_with_its_place(data, line, json_path, reason):
    """The error names file, line and JSON path, and says on one line what is wrong."""
    with pytest.raises(FormatError) as caught:
        events_of(data)
    error = caught.value
    assert (error.file, error.line, error.json_path) == ("log", line, json_path)
    assert reason in str(error)
    assert "\n" not in str(error)


def call_with(params: bytes) -> bytes:
    return (
        HEADER + b'{"params":{"a":%s},"params_hash":"h","step_id":"1","tool":"t","type":"ToolCall"}' % params
    )


@pytest.mark.parametrize("space", [b"", b" "], ids=["canonical", "spaced"])
def test_integers_of_64_bits_are_exact_and_larger_ones_refused(space):
    """Parameters hold -2**63 to 2**64 - 1 exactly, however the line is spelled."""
    for holdable in (-(2**63), 2**64 - 1):
        assert events_of(call_with(b"%d" % holdable + space))[1].params == {"a": holdable}
    for too_large in (-(2**63) - 1, 2**64, 10**5000):
        with pytest.raises(FormatError) as caught:
            events_of(call_with(str_of(too_large) + space))
        assert caught.value.line == 2


def str_of(integer: int) -> bytes:
    # Python prints no integer of more than 4300 digits.
    return b"%d" % integer if abs(integer) < 10**100 else b"1" + b"0" * 5000


@pytest.mark.parametrize("space", [b"", b" "], ids=["canonical", "spaced"])
def test_nesting_ends_at_254_levels(space):
    """The event, params and 252 arrays are read; one more is refused, however the line is spelled."""
    assert events_of(call_with(b"[" * 252 + b"]" * 252 + space))[1:]
    with pytest.raises(FormatError, match="nested deeper than 254 levels"):
        events_of(call_with(b"[" * 253 + b"]" * 253 + space))


@pytest.mark.parametrize("dialect", ["current", "legacy"])
def test_newer_version_is_refused_with_the_remedy(dialect):
    """A newer major version is not half-read, even by a lenient reader."""
    data = {"current": CURRENT, "legacy": LEGACY}[dialect].replace(
        b'"replay_version":1', b'"replay_version":2'
    )
    with pytest.raises(UnknownVersion, match="install a newer reenact") as caught:
        events_of(data, on_error=lambda error: None)
    assert (caught.value.line, caught.value.json_path) == (1, "$.replay_version")


def test_line_beyond_the_limit_is_refused_and_skipped_when_lenient():
    """An over-long line costs neither memory nor the lines behind it."""
    long = b'{"type":"X","a":"' + b"x" * 3_000_000 + b'"}\n'
    errors = []
    events = events_of(HEADER + long + b'{"type":"Y"}\n', max_line_bytes=1000, on_error=errors.append)
    assert [error.line for error in errors] == [2]
    assert "longer than 1000 bytes" in errors[0].reason
    assert events[1:] == [UnknownEvent({"type": "Y"})]


def test_lenient_reading_reports_every_bad_line_and_goes_on():
    """Each bad line is handed over with its place; the good ones are read all the same."""
    lines = CURRENT.splitlines(keepends=True)
    data = lines[0] + b"{\n" + lines[1] + b'{"type":"ToolCall"}\n' + HEADER + b"".join(lines[2:])
    errors = []
    assert events_of(data, on_error=errors.append) == events_of(CURRENT)
    assert [(error.file, error.line) for error in errors] == [("log", 2), ("log", 4), ("log", 5)]


def test_lenient_reading_without_a_header_keeps_the_first_event():
    """A log that lost its header says so once and is read in the dialect of its first event."""
    errors = []
    assert events_of(LEGACY[LEGACY.index(b"\n") + 1 :], on_error=errors.append) == events_of(LEGACY)[1:]
    assert [error.line for error in errors] == [1]


@patient
@given(st.binary(max_size=80))
def test_arbitrary_bytes_raise_nothing_but_format_errors(data):
    """Whatever stands in a file, alone or behind a header, it is an event or a FormatError."""
    for log in (data, HEADER + data, LEGACY + data):
        events_of(log, on_error=lambda error: None)


@patient
@given(st.integers(0, len(CURRENT) - 1), st.binary(min_size=1, max_size=1))
def test_a_damaged_byte_raises_nothing_but_format_errors(place, byte):
    """One changed byte of a good log is an event, an error or another version, never a crash."""
    damaged = CURRENT[:place] + byte + CURRENT[place + 1 :]
    with suppress(UnknownVersion):
        events_of(damaged, on_error=lambda error: None)


def test_blocks_and_single_lines_read_alike():
    """A long log is read in blocks; one odd line in it changes neither the others nor their places."""
    lines = CURRENT.splitlines(keepends=True)
    many = lines[1:] * 300
    odd = b' {"type":"Odd"}\n'
    data = HEADER + b"".join(many) + odd + b"".join(many)
    read = list(read_replay_log(io.BytesIO(data), file="log"))
    body = events_of(CURRENT)[1:] * 300
    assert [event for _, event in read[1:]] == [*body, UnknownEvent({"type": "Odd"}), *body]
    assert [line.number for line, _ in read] == list(range(1, len(read) + 1))
    assert all(data[line.offset :].startswith(line.text + b"\n") for line, _ in read[::97])


@pytest.mark.slow
def test_memory_does_not_grow_with_the_log(tmp_path):
    """Four megabytes of log are read in less than one."""
    log = tmp_path / "REPLAY.jsonl"
    body = CURRENT[len(HEADER) :]
    log.write_bytes(HEADER + body * (4_000_000 // len(body)))
    reader = ReplayReader(lambda: log.open("rb"))
    reader.total_latency_ms()
    tracemalloc.start()
    try:
        assert sum(1 for _ in reader.tool_calls()) > 2_000
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_events_before_a_bad_line_are_delivered_first():
    """A strict reader hands out what stands before the error, also before a line that is too long."""
    for bad in (b"{\n", b"x" * 2000 + b"\n"):
        reading = read_replay_log(io.BytesIO(CURRENT + bad + CURRENT), file="log", max_line_bytes=1000)
        read = [next(reading)[1] for _ in range(8)]
        assert read == events_of(CURRENT)
        with pytest.raises(FormatError, match="log:9: "):
            next(reading)


def test_reader_iterates_typed_events_again_and_again():
    """The log is opened anew for each pass."""
    reader = reader_of(CURRENT)
    assert list(reader) == list(reader) == events_of(CURRENT)
    assert next(reader.lines())[0] == Line(1, 0, HEADER.rstrip())


def test_reader_closes_what_it_opened():
    """No stream stays open, not even behind a pass that was left early."""
    opened = []

    def open_stream():
        opened.append(io.BytesIO(CURRENT))
        return opened[-1]

    reader = ReplayReader(open_stream)
    assert reader.dialect == "current"
    passing = reader.lines()
    next(passing)
    passing.close()
    reader.total_latency_ms()
    assert len(opened) == 3
    assert all(stream.closed for stream in opened)


SUMMARIES = {
    "current": (CURRENT, "current", "openagents", ["shell_command", "write_file"], 127.5, 0.2),
    "legacy": (LEGACY, "legacy", "adjutant@1.2.3", ["file_read"], 45, 0.8),
    "no results": (HEADER, "current", "openagents", [], 0, 0.0),
}


@pytest.mark.parametrize(
    ("data", "dialect", "producer", "tools", "latency_ms", "utility"), SUMMARIES.values(), ids=SUMMARIES
)
def test_reader_summarises_both_dialects_alike(data, dialect, producer, tools, latency_ms, utility):
    """Header, tool calls, latency and utility come from either dialect; without results they are 0."""
    reader = reader_of(data)
    assert reader.dialect == dialect
    assert reader.header.producer == producer
    assert [call.tool for call in reader.tool_calls()] == tools
    assert reader.total_latency_ms() == latency_ms
    assert is_same_f32(reader.average_step_utility(), utility)


def test_results_without_utility_do_not_count_in_the_average():
    """An absent utility is no zero."""
    result = (
        b'{"latency_ms":1,"ok":true,"output_hash":"h","side_effects":[],"step_id":"1","type":"ToolResult"}\n'
    )
    rated = result.replace(b',"type"', b',"step_utility":0.5,"type"')
    assert reader_of(HEADER + result + rated).average_step_utility() == 0.5


def test_header_of_a_headless_log_is_an_error_even_when_lenient():
    """Asking for what is not there is refused with its place."""
    with pytest.raises(FormatError, match="log:1: the first line must be a ReplayHeader"):
        reader_of(b'{"type":"X"}', file="log", on_error=lambda error: None).header  # noqa: B018


class Flushes(io.BytesIO):
    def __init__(self):
        super().__init__()
        self.flushed = []

    def flush(self):
        self.flushed.append(self.getvalue())


def test_writer_flushes_each_line_by_itself():
    """A reader behind the writer sees whole lines, each as soon as it is emitted."""
    stream = Flushes()
    writer = ReplayWriter(stream)
    for event in events_of(CURRENT)[:3]:
        writer.emit(event)
    lines = CURRENT.splitlines(keepends=True)
    assert stream.flushed == [b"".join(lines[:count]) for count in (1, 2, 3)]


def refused(events: list, dialect: str = "current") -> Exception:
    with pytest.raises((UsageError, FormatError)) as caught:
        written(events, dialect)
    return caught.value


def test_writer_refuses_events_of_the_other_dialect():
    """A log has one dialect; the message names the event and the way out."""
    for events, dialect in ((events_of(LEGACY), "current"), (events_of(CURRENT), "legacy")):
        error = refused(events, dialect)
        assert isinstance(error, UsageError)
        assert f"ReplayHeader is not an event of the {dialect} dialect; convert it" in str(error)
    assert isinstance(refused([events_of(CURRENT)[0], UnknownEvent({"event": "X"})]), UsageError)


def test_writer_wants_the_header_first_and_once():
    """Neither a log without header nor one with two can be written."""
    header, start, *_ = events_of(CURRENT)
    assert "as its first event" in str(refused([start]))
    assert "as its first event" in str(refused([header, header]))


def test_a_field_named_like_the_other_dialects_names_is_only_a_field():
    """A legacy log may hold an unknown event with a field `type`, whatever it says."""
    data = LEGACY + b'{"event":"Odd","type":"ReplayHeader"}\n'
    assert written(events_of(data), "legacy") == data


def test_two_lines_are_not_one_event():
    """A text of two events is refused, not half-read."""
    with pytest.raises(FormatError, match="not JSON: Extra data"):
        current.DIALECT.from_bytes(b"\n".join(CURRENT.splitlines()[1:3]))


def test_writer_refuses_what_could_not_be_read_again():
    """An event built by hand with a value outside its type is not written, nor is half a line."""
    header, *_, end = events_of(CURRENT)
    stream = io.BytesIO()
    writer = ReplayWriter(stream)
    writer.emit(header)
    with pytest.raises(FormatError) as caught:
        writer.emit(current.SessionEnd(status="fine", confidence=1, ts=end.ts))  # type: ignore[arg-type]
    assert caught.value.json_path == "$.status"
    assert stream.getvalue() == HEADER


F32 = json.loads(
    '{"0.8":0.800000011920929,"0.2":0.20000000298023224,"-0.4":-0.4000000059604645,'
    '"0.95":0.949999988079071,"0.92":0.9200000166893005,"1.0":1.0,"0.5":0.5}'
)


@pytest.mark.parametrize(("short", "widened"), F32.items())
def test_a_widened_32_bit_float_equals_its_short_form(short, widened):
    """0.8 of a receipt and 0.800000011920929 of a log are one value; its neighbour is another."""
    assert is_same_f32(float(short), widened)
    assert not is_same_f32(float(short), widened + 1e-6)


def test_numbers_beyond_32_bits_are_compared_as_they_are():
    """A value no 32-bit float holds equals itself only."""
    assert is_same_f32(1e300, 1e300)
    assert not is_same_f32(1e300, 1e301)

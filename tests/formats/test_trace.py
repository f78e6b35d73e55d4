"""The normalized trace: its reader and its writer."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.errors import FormatError, UnknownVersion
from reenact.formats.trace import CODEC, read_trace, write_trace
from tests.formats import UNREADABLE, examples, golden_files, json_values, law, record, texts

maybe_text = st.none() | texts


@st.composite
def events(draw):
    """Events in order whose parents, where they have one, come before them."""
    found = []
    for seq in range(1, draw(st.integers(0, 5)) + 1):
        parents = st.sampled_from([None, *(event["event_id"] for event in found)])
        event = {
            "event_id": st.just(f"evt-{seq}"),
            "seq": st.just(seq),
            "parent_event_id": parents,
            "data": st.dictionaries(texts, json_values, max_size=2),
            **dict.fromkeys(("ts", "type", "actor", "agent_id"), texts),
            **dict.fromkeys(("group_id", "session_id", "task_id"), maybe_text),
        }
        found.append(draw(record(event)))
    return found


traces = record(
    {
        "schema_version": st.just("0.1"),
        "trace_id": texts,
        "test_case_id": maybe_text,
        "test_run_id": texts,
        "adapter": record({"name": texts, "version": texts}),
        "capabilities": st.dictionaries(texts, st.booleans(), max_size=2),
        "scenario": record(
            {
                "trigger": st.just("user_message"),
                "scheduler_context": st.none() | st.dictionaries(texts, json_values, max_size=2),
                **dict.fromkeys(("group_id", "session_id", "task_id"), maybe_text),
            }
        ),
        "input_messages": st.lists(record({"role": texts, "content": json_values}), max_size=2),
        "events": events(),
        "final_output": record({"role": texts, "content": texts}),
        "status": texts,
        "metrics": record(
            {
                "timing_ms_total": st.integers(0, 2**53) | st.floats(0, 1e9),
                "tool_call_count": st.integers(0, 9),
                "retry_count": st.integers(0, 9),
                "token_usage": json_values,
            }
        ),
        "artifacts": st.dictionaries(texts, json_values, max_size=2),
    }
)


@law
@given(traces)
def test_writing_and_reading_keep_every_field(value):
    """Known or unknown, at every level."""
    trace = CODEC.from_json(value)
    assert read_trace(write_trace(trace), "trace.json") == trace
    assert json.loads(write_trace(trace)) == value


@law
@given(st.binary(max_size=80))
def test_arbitrary_bytes_raise_nothing_but_format_errors(data):
    """No trace is that short, so every one is refused."""
    with pytest.raises(FormatError):
        read_trace(data, "trace.json")


@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable_bytes_are_refused(name):
    """Nothing that is no trace gets through, and the error names the file on one line."""
    with pytest.raises(FormatError, match=r"\Atrace\.json: [^\n]+\Z"):
        read_trace(UNREADABLE[name], "trace.json")


GOLDEN = json.loads(golden_files("trace", "every-step.json")[0].read_text(encoding="utf-8"))


def changed(change):
    value = copy.deepcopy(GOLDEN)
    change(value)
    return json.dumps(value).encode()


BAD = {
    "seq from 0": (lambda v: v["events"][0].update(seq=0), "$.events[0].seq"),
    "gap in seq": (lambda v: v["events"].pop(1), "$.events[1].seq"),
    "event_id twice": (lambda v: v["events"][1].update(event_id="evt-1"), "$.events[1].event_id"),
    "unknown parent": (lambda v: v["events"][3].update(parent_event_id="x"), "$.events[3].parent_event_id"),
    "later parent": (lambda v: v["events"][3].update(parent_event_id="evt-5"), "$.events[3].parent_event_id"),
    "own parent": (lambda v: v["events"][3].update(parent_event_id="evt-4"), "$.events[3].parent_event_id"),
    "no actor": (lambda v: v["events"][0].pop("actor"), "$.events[0].actor"),
    "data a list": (lambda v: v["events"][0].update(data=[]), "$.events[0].data"),
    "content null": (lambda v: v["final_output"].update(content=None), "$.final_output.content"),
    "negative count": (lambda v: v["metrics"].update(tool_call_count=-1), "$.metrics.tool_call_count"),
    "unknown trigger": (lambda v: v["scenario"].update(trigger="x"), "$.scenario.trigger"),
}


@pytest.mark.parametrize("name", BAD)
def test_damage_is_named_by_its_path(name):
    """Order and links are part of the format, not only the types."""
    change, path = BAD[name]
    with pytest.raises(FormatError) as caught:
        read_trace(changed(change), "trace.json")
    assert str(caught.value).startswith(f"trace.json: {path}: ")


def test_a_later_major_version_is_refused():
    """Before anything else about it is judged."""
    with pytest.raises(UnknownVersion, match="normalized trace version 1"):
        read_trace(b'{"schema_version": "1.0"}', "trace.json")


@pytest.mark.parametrize("path", golden_files("trace"), ids=lambda path: path.stem)
def test_golden_files_are_written_as_they_were_read(path):
    """The writer gives the same bytes for ever."""
    assert write_trace(read_trace(path.read_bytes(), path.name)) == path.read_bytes()


def test_the_page_shows_traces_that_read():
    """Every example of the format's page goes through the reader."""
    pages = examples("trace.md", "trace")
    assert pages
    for text in pages:
        read_trace(text, "trace.md")

"""Whose memory was used, and what else was touched."""

import pytest

from tests.suite.runs import call, check, memory, table, trace_of

BRIEF = "- short\n- sweet"
LONG = "- " + "x" * 221

RECALL = {
    "read in the group": ([memory("read", "home")], "done", {}, "pass", ["evt-1"], "1 memory event at evt-1"),
    "written in the group": ([memory("write", "home")], "done", {}, "pass", ["evt-1"], ""),
    "in another group": (
        [memory("read", "work")],
        "done",
        {"expected_memory_fact": "bullets"},
        "fail",
        [],
        ("group home", "no memory events"),
    ),
    "of a group that is named": (
        [memory("read", "work")],
        "done",
        {"group_id": "work"},
        "pass",
        ["evt-1"],
        "",
    ),
    "shown by bullets": (
        [],
        BRIEF,
        {"expected_memory_fact": "Likes BULLET lists"},
        "pass",
        [],
        "not against it",
    ),
    "not shown": ([], "text", {"expected_memory_fact": "likes bullets"}, "fail", [], "against it"),
    "shown by brief bullets": ([], BRIEF, {"expected_memory_fact": "brief answers"}, "pass", [], ""),
    "not brief": ([], LONG, {"expected_memory_fact": "brief bullets"}, "fail", [], ""),
    "long bullets are bullets": ([], LONG, {"expected_memory_fact": "bullets"}, "pass", [], ""),
    "just brief enough": ([], LONG[:-3], {"expected_memory_fact": "brief"}, "pass", [], ""),
    "brief without bullets": ([], "text", {"expected_memory_fact": "brief"}, "pass", [], ""),
    "another fact has no form": ([], BRIEF, {"expected_memory_fact": "tea"}, "pass", [], "not against it"),
    "nothing was said": ([], " ", {"expected_memory_fact": "tea"}, "fail", [], "'tea'"),
}


@pytest.mark.parametrize(("script", "output", "params", "status", "refs", "said"), **table(RECALL))
def test_memory_is_recalled_in_its_group(script, output, params, status, refs, said):
    """By a memory event of the group, or by the form of the output."""
    params = {"expected_memory_fact": "likes tea", **params}
    check("memory_recall_same_group", params, trace_of(*script, output=output), status, refs, said)


def test_a_run_without_a_group_has_the_memory_without_one():
    """Neither the scenario nor the test names a group."""
    trace = trace_of(memory("read", None), memory("read", "home"), scenario={"group_id": None})
    params = {"expected_memory_fact": "x"}
    check("memory_recall_same_group", params, trace, "pass", ["evt-1"], "without a group")


def test_a_correction_needs_a_group():
    """Neither the scenario nor the test names one."""
    trace = trace_of(scenario={"group_id": None})
    check("memory_update_on_correction", {}, trace, "fail", [], "params.group_id: required")


CROSS = {
    "own memory": ([memory("read", "home")], {}, "pass", ["evt-1"], "found none among 1 memory event"),
    "no memory at all": ([], {}, "pass", [], ""),
    "no memory, but proof is wanted": (
        [],
        {"require_event_level_proof": True},
        "fail",
        [],
        "found none at all",
    ),
    "proven": ([memory("write", "home")], {"require_event_level_proof": True}, "pass", ["evt-1"], ""),
    "foreign memory": (
        *([memory("read", "home"), memory("write", "work", "notes.md")], {}, "fail", ["evt-2"]),
        "expected no memory event in work, lab, found work:notes.md at evt-2",
    ),
}


@pytest.mark.parametrize(("script", "params", "status", "refs", "said"), **table(CROSS))
def test_forbidden_groups_are_not_touched(script, params, status, refs, said):
    """Reads and writes alike."""
    params = {"forbidden_group_ids": ["work", "lab"], **params}
    check("no_cross_group_memory_use", params, trace_of(*script), status, refs, said)


def said_step(text):
    return {"type": "message_received", "content": text}


WRITE = memory("write", "home", change_summary="Moved to 9 Elm Street")
UPDATE = {
    "any write": ([WRITE], {}, "pass", ["evt-1"], ""),
    "no write": ([memory("read", "home")], {}, "fail", [], "found none among no writes"),
    "the fact": ([WRITE], {"expected_memory_fact": "9 elm street"}, "pass", ["evt-1"], ""),
    "another fact": (
        [WRITE],
        {"expected_memory_fact": "Oak"},
        "fail",
        ["evt-1"],
        "mentions 'Oak', found none among 1",
    ),
    "another group": ([memory("write", "work")], {}, "fail", [], "group home"),
    "another file": ([WRITE], {"path": "other.md"}, "fail", [], ""),
    "after the correction": (
        *([said_step("No, wrong."), WRITE], {"correction": "^no"}, "pass", ["evt-1", "evt-2"], ""),
    ),
    "before the correction": (
        [WRITE, said_step("No, wrong.")],
        {"correction": "^no"},
        "fail",
        ["evt-2"],
        "found none",
    ),
    "correction among the messages": ([WRITE], {"correction": "i moved"}, "pass", ["evt-1"], ""),
    "never corrected": (
        [WRITE],
        {"correction": "^never"},
        "fail",
        ["evt-1"],
        "found no message that matches '^never'",
    ),
}


@pytest.mark.parametrize(("script", "params", "status", "refs", "said"), **table(UPDATE))
def test_a_correction_is_written_down(script, params, status, refs, said):
    """In the group's memory, after it was made, with what it says."""
    trace = trace_of(*script, messages=["Hello", "Actually, I moved."])
    check("memory_update_on_correction", params, trace, status, refs, said)


STATE = {
    "within a directory": (
        ["groups/home/a.md"],
        {"paths": ["groups/home/*"]},
        "pass",
        ["evt-1"],
        "nothing else",
    ),
    "below a directory": (["groups/home/x/y.md"], {"paths": ["groups/home/**"]}, "pass", ["evt-1"], ""),
    "deeper than one star": (
        ["groups/home/x/y.md"],
        {"paths": ["groups/home/*"]},
        "fail",
        ["evt-1"],
        "x/y.md at evt-1",
    ),
    "stars in between": (["a/b/c/notes.md"], {"paths": ["a/**/notes.md"]}, "pass", ["evt-1"], ""),
    "stars for nothing": (["a/notes.md"], {"paths": ["a/**/notes.md"]}, "pass", ["evt-1"], ""),
    "out through the back": (["ok/../secret"], {"paths": ["ok/**"]}, "fail", ["evt-1"], "ok/../secret"),
    "a dot is a dot": (["notesXmd"], {"paths": ["notes.md"]}, "fail", ["evt-1"], ""),
    "case matters": (["NOTES.md"], {"paths": ["notes.md"]}, "fail", ["evt-1"], ""),
    "no path": ([None], {"paths": ["**"]}, "fail", ["evt-1"], "memory_write (no path)"),
    "a kind": (["x"], {"kinds": ["memory_write"]}, "pass", ["evt-1"], ""),
    "another kind": (["x"], {"kinds": ["memory_read"]}, "fail", ["evt-1"], "memory_write x at evt-1"),
    "nothing allowed": (["x"], {"paths": []}, "fail", ["evt-1"], "only in nothing"),
    "nothing touched": ([], {"paths": []}, "pass", [], ""),
    "nothing asked": ([], {}, "fail", [], "give paths or kinds"),
}


@pytest.mark.parametrize(("paths", "params", "status", "refs", "said"), **table(STATE))
def test_only_allowed_state_is_touched(paths, params, status, refs, said):
    """By path and by kind."""
    trace = trace_of(*(memory("write", "home", path) for path in paths), call("x"))
    check("state_mutation_allowed", params, trace, status, refs, said)

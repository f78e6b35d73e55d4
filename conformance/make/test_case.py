"""Test cases: YAML that people write, so the line of every problem is expected too."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.make.case import Case, Found

GOOD = """\
schema_version: "0.1"
id: weather.asks
title: The weather is looked up
adapter: nanoclaw
mode: replay
scenario: {trigger: user_message}
tools: {}
adapter_input:
  replay_file: ./replay.json
assertions:
  - id: asks
    type: must_call_tool
    params: {tool: forecast}
"""
SOURCE = "  replay_file: ./replay.json\n"
ASSERTIONS = GOOD[GOOD.index("assertions:") :]
DEEP = "[" * 101 + "]" * 101

ACCEPTED: tuple[tuple[str, str, str, str], ...] = (
    ("good", "A test case.", "", ""),
    ("good-words", "`yes` and dates are text in YAML 1.2.", "The weather is looked up", "yes"),
    ("good-version", "Unquoted, the version is a number; it is read.", '"0.1"', "0.1"),
    ("good-forms", "One value stands for a list of one.", "tools: {}", "tools: {available: a}\ntags: x"),
    ("good-bare", "Title and tools may be absent.", "title: The weather is looked up\n", ""),
    ("good-null", "What may be absent may be null.", "tools: {}", "tools: {}\ntags: null\ndescription: ~"),
    ("good-params", "Below params any key may stand.", "{tool: forecast}", "{tool: forecast, mood: calm}"),
    ("good-command", "A command is replayed from a capture.", SOURCE, "  command: [run]\n  capture: run\n"),
    ("good-windows", "A byte order mark and CR LF are tolerated.", "\n", "\r\n"),
)
UNREADABLE: tuple[tuple[str, str, str, str], ...] = (
    ("alias", "Anchors and aliases are refused.", "tools: {}", "tools: &a {}\ntags: *a"),
    ("tag", "Tags are refused.", "tools: {}", "tools: !own {}"),
    ("key-twice", "A key appears twice.", "mode: replay", "mode: replay\nmode: live"),
    ("key-no-text", "A key is not text.", "{tool: forecast}", "{1: forecast}"),
    ("second-document", "A second document follows.", ASSERTIONS, f"{ASSERTIONS}---\nid: other\n"),
    ("tab", "A tab indents.", "  - id: asks", "\t- id: asks"),
    ("not-a-number", "A number is not finite.", "{tool: forecast}", "{tool: .nan}"),
    ("number-too-large", "A number is beyond 64 bits.", "{tool: forecast}", "{tool: 18446744073709551616}"),
    ("control-character", "A control character stands in the text.", "forecast", "fore\x07cast"),
    ("too-deep", "It is nested more than 100 levels deep.", "{tool: forecast}", f"{{tool: {DEEP}}}"),
)
REJECTED: tuple[tuple[str, str, str, str, tuple[Found, ...]], ...] = (
    (
        "field-missing",
        "A required field is missing; its object starts at the first line.",
        "mode: replay\n",
        "",
        (Found("missing_field", 1, "$.mode"),),
    ),
    (
        "version-no-number",
        "Unquoted, the version is a number, but not this one.",
        '"0.1"',
        "1",
        (Found("wrong_type", 1, "$.schema_version"),),
    ),
    (
        "mode-live",
        "Nothing is run live; the recorded run is judged.",
        "mode: replay",
        "mode: live",
        (Found("live_mode", 5, "$.mode", "warning"),),
    ),
    (
        "version-newer",
        "A later major version.",
        '"0.1"',
        '"1.0"',
        (Found("unknown_version", 1, "$.schema_version"),),
    ),
    ("mode-unknown", "None of the choices.", "replay\n", "dream\n", (Found("wrong_type", 5, "$.mode"),)),
    (
        "key-unknown",
        "A key that nobody knows, at the top and below.",
        "scenario: {trigger: user_message}",
        "titel: x\nscenario: {trigger: user_message, grup_id: x}",
        (
            Found("unknown_key", 6, "$.titel", "warning"),
            Found("unknown_key", 7, "$.scenario.grup_id", "warning"),
        ),
    ),
    (
        "trigger-unknown",
        "A trigger of another name.",
        "user_message",
        "full_moon",
        (Found("wrong_type", 6, "$.scenario.trigger"),),
    ),
    (
        "two-sources",
        "Two runs are named.",
        SOURCE,
        f"{SOURCE}  replay_log: REPLAY.jsonl\n",
        (Found("ambiguous_source", 8, "$.adapter_input"),),
    ),
    (
        "no-source",
        "No run is named.",
        f"adapter_input:\n{SOURCE}",
        "adapter_input: {}\n",
        (Found("ambiguous_source", 8, "$.adapter_input"),),
    ),
    (
        "source-null",
        "A source is never null.",
        "./replay.json",
        "null",
        (Found("wrong_type", 9, "$.adapter_input.replay_file"),),
    ),
    (
        "no-assertions",
        "A test without assertions proves nothing.",
        ASSERTIONS,
        "assertions: []\n",
        (Found("no_assertions", 10, "$.assertions"),),
    ),
    (
        "severity-unknown",
        "A severity is critical or warning.",
        "    type: must_call_tool",
        "    type: must_call_tool\n    severity: mild",
        (Found("wrong_type", 13, "$.assertions[0].severity"),),
    ),
    (
        "id-twice",
        "Results of two assertions could not be told apart.",
        ASSERTIONS,
        f"{ASSERTIONS}  - {{id: asks, type: max_tool_calls}}\n",
        (Found("duplicate_id", 14, "$.assertions[1].id", "warning"),),
    ),
)


def test_case_cases() -> Iterator[Case]:
    for name, about, before, after in ACCEPTED:
        yield _case(name, about, before, after)
    for name, about, before, after, found in REJECTED:
        yield _case(name, about, before, after)._replace(findings=found)
    for name, about, before, after in UNREADABLE:
        yield _case(name, about, before, after)._replace(exit=2)


def _case(name: str, about: str, before: str, after: str) -> Case:
    text = GOOD.replace(before, after) if before else GOOD
    mark = "\ufeff" if after == "\r\n" else ""
    return Case(name, about, "test.yaml", {"test.yaml": (mark + text).encode()})

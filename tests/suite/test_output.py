"""The text of the final output."""

import pytest

from tests.suite.runs import check, table, trace_of

TEXT = "Hello World.\nSecond line\n\nNew paragraph"
BULLETS = "Intro:\n- One. Two!\n* Three\n  - Nested?"
FINAL = {"type": "final_output"}


def trace_with(output):
    return trace_of(FINAL | {"content": output}, output=output)


CONTAINS = {
    "any of": ({"any_of": ["moon", "WORLD"]}, "pass", ""),
    "none of any": ({"any_of": ["moon", "sun"]}, "fail", "one of 'moon', 'sun', found 'Hello World."),
    "all of": ({"all_of": ["hello", "second"]}, "pass", ""),
    "one of all missing": ({"all_of": ["hello", "third"]}, "fail", "contain 'third'"),
    "regex at a line's start": ({"regex": ["^second", "line$"]}, "pass", ""),
    "one regex misses": ({"regex": ["^second", "^line"]}, "fail", "a match of '^line'"),
    "every group": ({"any_of": ["hello"], "all_of": ["third"]}, "fail", "'third'"),
    "case matters": ({"any_of": ["hello"], "case_sensitive": True}, "fail", "'hello'"),
    "case matters to regex": ({"regex": ["HELLO"], "case_sensitive": True}, "fail", "'HELLO'"),
    "nothing asked": ({}, "fail", "give any_of, all_of or regex"),
}


@pytest.mark.parametrize(("params", "status", "said"), **table(CONTAINS))
def test_every_given_group_holds(params, status, said):
    """No event is named: the text is the run's own."""
    check("output_contains", params, trace_with(TEXT), status, [], said)


OMITS = {
    "omitted": ({"patterns": ["moon"]}, "pass", "none of it"),
    "found": ({"patterns": ["moon", "world"]}, "fail", "found 'world'"),
    "case matters": ({"patterns": ["world"], "case_sensitive": True}, "pass", ""),
    "text is no pattern": ({"patterns": ["W.rld"]}, "pass", ""),
    "regex": ({"patterns": ["w.rld"], "regex": True}, "fail", "found 'World'"),
    "regex, line by line": ({"patterns": ["^line"], "regex": True}, "pass", ""),
}


@pytest.mark.parametrize(("params", "status", "said"), **table(OMITS))
def test_nothing_that_must_be_omitted_is_there(params, status, said):
    """What was found is quoted as it stands in the output."""
    check("output_omits", params, trace_with(TEXT), status, [], said)


FORMATS = {
    "bullets": (BULLETS, {"format": "bullet_list", "min_bullets": 3, "max_bullets": 3}, "pass", "bullets 3"),
    "any bullets": (BULLETS, {"format": "bullet_list"}, "pass", ""),
    "no bullets": (TEXT, {"format": "bullet_list"}, "fail", "no bullets, fewer than 1"),
    "at least one": (TEXT, {"format": "bullet_list", "min_bullets": 0}, "fail", "no bullets, fewer than 1"),
    "too few": (BULLETS, {"format": "bullet_list", "min_bullets": 4}, "fail", "3 bullets, fewer than 4"),
    "too many": (BULLETS, {"format": "bullet_list", "max_bullets": 2}, "fail", "3 bullets, more than 2"),
    "sentences": (
        *(BULLETS, {"format": "bullet_list", "max_sentences_per_bullet": 1}, "fail"),
        "2 sentences in bullet 1, more than 1",
    ),
    "a version is no sentence": (
        "- v1.2.3 is out",
        {"format": "bullet_list", "max_sentences_per_bullet": 1},
        "pass",
        "",
    ),
    "paragraphs": (TEXT, {"format": "paragraphs", "exact_paragraphs": 2}, "pass", "paragraphs 2"),
    "blank lines with spaces": ("a\n \t\nb", {"format": "paragraphs", "exact_paragraphs": 2}, "pass", ""),
    "other paragraphs": (
        TEXT,
        {"format": "paragraphs", "exact_paragraphs": 1},
        "fail",
        "2 paragraphs instead of 1",
    ),
    "json": ('{"a": {"b": 1}}', {"format": "json", "required_keys": ["a", "$.a.b"]}, "pass", ""),
    "a key as it is": ('{"a.b": 1}', {"format": "json", "required_keys": ["a.b"]}, "pass", ""),
    "a dotted key is no path": (
        *('{"a": {"b": 1}}', {"format": "json", "required_keys": ["a.b"]}, "fail", "no key 'a.b'"),
    ),
    "a rule, bold text and a number": (
        *("---\n**bold**\n-5 degrees\n-\n* ", {"format": "bullet_list"}, "fail", "no bullets"),
    ),
    "json without a key": ('{"a": 1}', {"format": "json", "required_keys": ["a", "z"]}, "fail", "no key 'z'"),
    "json that is a list": ("[1]", {"format": "json", "required_keys": ["a"]}, "fail", "not an object"),
    "json that is a number": ("1", {"format": "json"}, "pass", ""),
    "not json": ("{a}", {"format": "json"}, "fail", "not JSON"),
    "a parameter of another format": (
        *(TEXT, {"format": "json", "min_bullets": 1}, "fail"),
        "params.min_bullets: is for bullet_list, not for json",
    ),
    "unknown format": ("", {"format": "haiku"}, "fail", "params.format: invalid enum value 'haiku'"),
}


@pytest.mark.parametrize(("output", "params", "status", "said"), **table(FORMATS))
def test_the_form_of_the_output(output, params, status, said):
    """Bullets, paragraphs and JSON, each with its own parameters."""
    check("output_matches_format", params, trace_with(output), status, [], said)


SCHEMA = {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}
SCHEMAS = {
    "valid": ('{"city": "Oslo"}', "pass", "found it"),
    "wrong type": ('{"city": 7}', "fail", '$.city: 7 is not of type "string"'),
    "missing": ("{}", "fail", '"city" is a required property'),
    "not json": ("Oslo", "fail", "$: not JSON"),
    "a key twice": ('{"city": "Oslo", "city": "Rome"}', "fail", "appears twice"),
}


@pytest.mark.parametrize(("output", "status", "said"), **table(SCHEMAS))
def test_the_output_follows_a_schema(output, status, said):
    """Problems are named with their paths."""
    check("final_output_json_schema", {"schema": SCHEMA}, trace_with(output), status, ["evt-1"], said)


def test_a_bundle_may_give_the_output_at_its_top_alone():
    """Without an event."""
    check("output_contains", {"any_of": ["done"]}, trace_of(), "pass", [], "")

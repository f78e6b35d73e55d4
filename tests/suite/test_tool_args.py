"""What tools were called with."""

import pytest

from tests.suite.runs import call, check, judged, table, trace_of

TRACE = trace_of(
    call("search", "c1", query="Weather in OSLO", filters={"days": 3, "tags": ["a", "b"]}, safe=True),
    call("search", "c2", query="news", limit=10),
    call("send", "c3"),
)

MATCH = {
    "keys": ({"required_keys": ["query", "$.filters.days"]}, "pass", ["evt-1"], "evt-1 matches"),
    "an item of a list": ({"required_keys": ["$.filters.tags[1]"]}, "pass", ["evt-1"], ""),
    "a dotted key is no path": (
        *({"required_keys": ["filters.days"]}, "fail", ["evt-1", "evt-2"], "filters.days is missing"),
    ),
    "one key": ({"required_keys": "query"}, "pass", ["evt-1"], ""),
    "missing key": (
        *({"required_keys": ["limit", "filters"]}, "fail", ["evt-1", "evt-2"]),
        ("found none of 2", "evt-1: limit is missing", "evt-2: filters is missing"),
    ),
    "contains ignores case": ({"args_contains": {"query": "oslo"}}, "pass", ["evt-1"], ""),
    "other values are equal": ({"args_contains": {"limit": 10}}, "pass", ["evt-2"], ""),
    "true is not 1": (
        {"args_contains": {"safe": 1}},
        "fail",
        ["evt-1", "evt-2"],
        "safe should contain 1, is true",
    ),
    "a number is no text": (
        {"args_contains": {"limit": "10"}},
        "fail",
        ["evt-1", "evt-2"],
        'contain "10", is 10',
    ),
    "regex searches and ignores case": ({"regex": {"query": "in oslo$"}}, "pass", ["evt-1"], ""),
    "regex on a number": ({"regex": {"limit": "^1"}}, "pass", ["evt-2"], ""),
    "regex misses": (
        {"regex": {"query": "^paris"}},
        "fail",
        ["evt-1", "evt-2"],
        "query should match '^paris'",
    ),
    "not one call has both": (
        *({"required_keys": ["limit"], "args_contains": {"query": "oslo"}}, "fail", ["evt-1", "evt-2"]),
        "expected one call that matches",
    ),
}


@pytest.mark.parametrize(("match", "status", "refs", "said"), **table(MATCH))
def test_one_single_call_satisfies_all(match, status, refs, said):
    """What one call lacks another cannot make good."""
    check("tool_args_match", {"tool": "search", "match": match}, TRACE, status, refs, said)


def test_a_tool_that_was_not_called_matches_nothing():
    """And the message says what was called instead."""
    said = ("found no call", "the tools called were search, send")
    check("tool_args_match", {"tool": "fetch", "match": {}}, TRACE, "fail", [], said)


ARGS = {
    "partial": ({"args": {"query": "news"}}, "pass", ["evt-2"], ""),
    "partial, nested": ({"args": {"filters": {"days": 3}}}, "pass", ["evt-1"], ""),
    "exact": ({"args": {"query": "news", "limit": 10.0}, "mode": "exact"}, "pass", ["evt-2"], ""),
    "not exact": (
        *({"args": {"query": "news"}, "mode": "exact"}, "fail", ["evt-1", "evt-2"]),
        'the arguments should be {"query":"news"}, are {"limit":10,"query":"news"}',
    ),
    "every call": (
        *({"args": {"query": "news"}, "calls": "all"}, "fail", ["evt-1", "evt-2"]),
        ("expected every call to match", "evt-1: the arguments should include"),
    ),
    "the last call": ({"args": {"query": "news"}, "calls": "last"}, "pass", ["evt-2"], "the last call"),
    "the first call": ({"args": {"query": "news"}, "calls": "first"}, "fail", ["evt-1"], "the first call"),
    "schema": (
        {"schema": {"required": ["limit"], "properties": {"limit": {"maximum": 10}}}},
        "pass",
        ["evt-2"],
        "",
    ),
    "schema broken": (
        *({"schema": {"properties": {"query": {"type": "integer"}}}}, "fail", ["evt-1", "evt-2"]),
        '$.query: "news" is not of type "integer"',
    ),
    "matchers": (
        {
            "matchers": {
                "query": {"contains": "WEATHER"},
                "$.filters.tags[*]": "b",
                "filters.days": {"min": 1, "max": 3},
            }
        },
        *("pass", ["evt-1"], ""),
    ),
    "one of": ({"matchers": {"limit": {"one_of": [5, 10]}}}, "pass", ["evt-2"], ""),
    "of a type": ({"matchers": {"limit": {"type": "integer", "regex": None}}}, "pass", ["evt-2"], ""),
    "absent": ({"matchers": {"filters": {"exists": False}}}, "pass", ["evt-2"], ""),
    "not absent": (
        {"matchers": {"query": {"exists": False}}},
        "fail",
        ["evt-1", "evt-2"],
        "query should not be there",
    ),
    "too large": (
        {"matchers": {"limit": {"max": 5}}},
        "fail",
        ["evt-1", "evt-2"],
        "limit should be 5 or less, is 10",
    ),
    "too small": (
        {"matchers": {"limit": {"min": 11}}},
        "fail",
        ["evt-1", "evt-2"],
        "limit should be 11 or more",
    ),
    "wrong type": (
        {"matchers": {"safe": {"type": "number"}}},
        "fail",
        ["evt-1", "evt-2"],
        "safe should be of type number",
    ),
    "regex": ({"matchers": {"query": {"regex": "^n"}}}, "pass", ["evt-2"], ""),
    "list contains": ({"matchers": {"filters.tags": {"contains": "b"}}}, "pass", ["evt-1"], ""),
    "unknown matcher": (
        *({"matchers": {"query": {"contain": "x"}}}, "fail", []),
        "params.matchers.query.contain: unknown parameter; did you mean 'contains'?",
    ),
    "nothing asked": ({}, "fail", [], "give args, schema or matchers"),
}


@pytest.mark.parametrize(("params", "status", "refs", "said"), **table(ARGS))
def test_arguments_by_value_schema_and_matcher(params, status, refs, said):
    """All that is given must hold of one call, or of those that are chosen."""
    check("tool_args", {"tool": "search", **params}, TRACE, status, refs, said)


BAD_SCHEMAS = {
    "no schema": (3, "not a JSON Schema"),
    "unknown type": ({"type": "strin"}, "not a JSON Schema"),
    "fetched": ({"$ref": "https://schemas.example/order"}, "https://schemas.example/order is not fetched"),
    "no regular expression": ({"pattern": "["}, "not a JSON Schema"),
}


@pytest.mark.parametrize(("schema", "said"), **table(BAD_SCHEMAS))
def test_a_bad_schema_fails_the_assertion_with_the_reason(schema, said):
    """Nothing is fetched, and nothing raises."""
    check("tool_args", {"tool": "search", "schema": schema}, TRACE, "fail", [], said)


def test_patterns_in_schemas_are_linear():
    """A schema cannot hang the run either."""
    trace = trace_of(call("search", query="x" * 50_000))
    found = judged(
        "tool_args", {"tool": "search", "schema": {"properties": {"query": {"pattern": "(x+x+)+y"}}}}, trace
    )
    assert found.status == "fail"

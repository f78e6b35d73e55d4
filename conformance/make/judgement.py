"""What bundles become as traces, and what every assertion type says of them."""

from __future__ import annotations

from typing import Any

from conformance.make.case import Event

STARTED_AT = "2026-03-01T08:00:00.000Z"


def _bundle(script: list[Event], output: str, **more: Any) -> Event:
    bundle: Event = {
        "schema_version": "0.1",
        "adapter": "nanoclaw-replay",
        "scenario": {"trigger": "user_message", "group_id": "home", "session_id": "s1"},
        "input_messages": [{"role": "user", "content": "Please look up tea"}],
        "script": script,
        "final_output": {"role": "assistant", "content": output},
        "status": "success",
        "metrics": {"timing_ms_total": 900, "token_usage": {"input_tokens": 100, "output_tokens": 20}},
    }
    return bundle | more


def _call(call_id: str, tool: str, **args: Any) -> Event:
    return {"type": "tool_call", "tool": tool, "call_id": call_id, "args": args}


def _result(call_id: str, tool: str, result: Any = None, *, success: bool = True) -> Event:
    return {"type": "tool_result", "tool": tool, "call_id": call_id, "success": success, "result": result}


def _failure(call_id: str, tool: str) -> Event:
    return {"type": "error", "scope": "tool", "tool": tool, "call_id": call_id, "error_type": "timeout"}


def _memory(kind: str, group_id: str, path: str, **more: Any) -> Event:
    return {"type": f"memory_{kind}", "group_id": group_id, "path": path, **more}


SAID = "- Green tea grows in Shizuoka https://tea.example/green\n- Leaves are steamed. Then dried."
FOUND = {"items": [{"url": "https://tea.example/green", "text": "Green tea grows in Shizuoka"}]}
DIGEST: Event = {"trigger": "scheduler", "group_id": "home", "task_id": "digest", "scheduler_context": {}}
BUNDLES: Event = {
    "looked up": _bundle(
        [
            _call("c1", "search", query="Green tea", filters={"days": 7}, dry=False),
            _result("c1", "search", FOUND),
            _call("c2", "read", path="notes.md"),
            _result("c2", "read", {"text": "Leaves are steamed, then dried"}),
            {"type": "final_output", "content": SAID},
        ],
        SAID,
    ),
    "scheduled": _bundle(
        [
            _call("c1", "fetch"),
            _failure("c1", "fetch"),
            _call("c2", "fetch"),
            _result("c2", "fetch", "news"),
            _call("c3", "outbound_send"),
            _result("c3", "outbound_send"),
        ],
        "Sent.",
        scenario=DIGEST,
    ),
    "corrected": _bundle(
        [
            _memory("read", "home", "groups/home/CLAUDE.md"),
            {"type": "message_received", "role": "user", "content": "No, I like oolong."},
            _memory("write", "home", "groups/home/CLAUDE.md", change_summary="likes oolong"),
        ],
        "Which kind of oolong do you mean?",
        capabilities={"supports_memory_events": True},
    ),
    "failed": _bundle(
        [_call("c1", "send", to="ann"), _result("c1", "send", success=False), _failure("c1", "send")],
        "I could not send it.",
    ),
    "as data": _bundle([], '{"city": "Oslo", "a": {"b": 1}}'),
}

BUNDLES |= {
    "by nobody": _bundle(
        [_call("c1", "send", note=None), {"type": "error", "call_id": "c1", "error_type": "timeout"}],
        f"-\x0c{'w' * 218}\n - {'w' * 216}\n",
        scenario={"trigger": "scheduler", "scheduler_context": {"task_id": "digest"}},
    )
}
LOOK, PLAN, FIX, FAIL, DATA, NONE = BUNDLES
OF_CALL, OF_RESULT = {"event_type": "tool_call"}, {"event_type": "tool_result"}
JUDGED: tuple[tuple[str, str, Event, str, list[int]], ...] = (
    ("must_call_tool", LOOK, {"tool": "search"}, "pass", [1]),
    ("must_call_tool", LOOK, {"tool": "search", "min_calls": "2"}, "fail", [1]),
    ("must_not_call_tool", LOOK, {"tool": "send"}, "pass", []),
    ("must_not_call_tool", LOOK, {"tool": "read"}, "fail", [3]),
    (
        "tool_call_order",
        LOOK,
        {"before": OF_RESULT | {"success": True}, "after": OF_CALL | {"tool": "read"}},
        "pass",
        [2, 3],
    ),
    ("tool_call_order", LOOK, {"before": OF_CALL | {"tool": "read"}, "after": OF_CALL}, "fail", [3, 1]),
    ("tool_call_order", LOOK, {"before": OF_CALL | {"tool": "fly"}, "after": OF_CALL}, "fail", []),
    ("tool_call_order", LOOK, {"before": OF_RESULT | {"success": None}, "after": OF_CALL}, "fail", []),
    ("max_tool_calls", LOOK, {"max_total": 2}, "pass", [1, 3]),
    ("tool_call_order", LOOK, {"before": OF_CALL, "after": OF_CALL}, "fail", [1, 1]),
    ("max_tool_calls", LOOK, {"tool": "read", "max": 0}, "fail", [3]),
    ("max_tool_calls", LOOK, {"tool": "read", "max": None}, "fail", [3]),
    ("max_tool_calls", LOOK, {"tool": "read", "max": 1, "max_total": 1}, "fail", [1, 3]),
    (
        "tool_args_match",
        LOOK,
        {
            "tool": "search",
            "match": {
                "required_keys": "query",
                "args_contains": {"query": "TEA", "filters.days": 7},
                "regex": {"query": "^green"},
            },
        },
        "pass",
        [1],
    ),
    ("tool_args_match", LOOK, {"tool": "search", "match": {"required_keys": ["filters.days"]}}, "fail", [1]),
    (
        "tool_args_match",
        LOOK,
        {"tool": "search", "match": {"required_keys": ["$.filters.days"]}},
        "pass",
        [1],
    ),
    ("tool_args_match", LOOK, {"tool": "search", "match": {"args_contains": {"dry": False}}}, "pass", [1]),
    ("tool_args_match", LOOK, {"tool": "search", "match": {"required_keys": "$.dry"}}, "fail", [1]),
    ("tool_args_match", NONE, {"tool": "send", "match": {"args_contains": {"note": None}}}, "fail", [1]),
    ("tool_args_match", NONE, {"tool": "send", "match": {"regex": {"note": "."}}}, "fail", [1]),
    (
        "stop_after_success",
        PLAN,
        {
            "success_event": OF_RESULT | {"tool": "outbound_send", "success": True},
            "forbid_following": OF_CALL,
        },
        "pass",
        [6],
    ),
    (
        "stop_after_success",
        PLAN,
        {"success_event": OF_RESULT | {"tool": "fetch", "success": True}, "forbid_following": OF_CALL},
        "fail",
        [4, 5],
    ),
    (
        "stop_after_success",
        PLAN,
        {
            "success_event": OF_RESULT | {"tool": "fetch"},
            "forbid_following": OF_CALL,
            "allowed_following_tools": "outbound_send",
        },
        "pass",
        [4],
    ),
    (
        "output_contains",
        LOOK,
        {"any_of": ["shizuoka", "x"], "all_of": "steamed", "regex": ["^- leaves"]},
        "pass",
        [],
    ),
    ("output_contains", LOOK, {"all_of": ["Shizuoka", "Uji"]}, "fail", []),
    ("output_contains", LOOK, {"any_of": ["shizuoka"], "case_sensitive": True}, "fail", []),
    ("output_omits", LOOK, {"patterns": "oolong"}, "pass", []),
    ("output_omits", LOOK, {"patterns": ["^- Lea"], "regex": True}, "fail", []),
    (
        "output_matches_format",
        LOOK,
        {"format": "bullet_list", "min_bullets": 2, "max_bullets": 2, "max_sentences_per_bullet": 2},
        "pass",
        [],
    ),
    ("output_matches_format", LOOK, {"format": "bullet_list", "max_sentences_per_bullet": 1}, "fail", []),
    ("output_matches_format", FIX, {"format": "bullet_list", "min_bullets": 0}, "fail", []),
    ("output_matches_format", NONE, {"format": "bullet_list", "min_bullets": 2}, "pass", []),
    ("output_matches_format", LOOK, {"format": "paragraphs", "exact_paragraphs": 1}, "pass", []),
    ("output_matches_format", DATA, {"format": "json", "required_keys": ["city", "a"]}, "pass", []),
    ("output_matches_format", DATA, {"format": "json", "required_keys": ["a.b"]}, "fail", []),
    ("claims_supported_by_fixtures", LOOK, {"allowed_sources": ["search", "read"]}, "pass", [2, 4]),
    ("claims_supported_by_fixtures", LOOK, {"allowed_sources": "search"}, "fail", [2]),
    ("claims_supported_by_fixtures", FAIL, {"allowed_sources": ["send"]}, "fail", []),
    ("claims_supported_by_fixtures", LOOK, {}, "fail", []),
    ("memory_recall_same_group", FIX, {"expected_memory_fact": "likes oolong"}, "pass", [1, 3]),
    (
        "memory_recall_same_group",
        FIX,
        {"expected_memory_fact": "wants bullets", "group_id": "work"},
        "fail",
        [],
    ),
    ("memory_recall_same_group", NONE, {"expected_memory_fact": "bullets"}, "pass", []),
    ("memory_recall_same_group", NONE, {"expected_memory_fact": "brief"}, "fail", []),
    (
        "no_cross_group_memory_use",
        FIX,
        {"forbidden_group_ids": ["work"], "require_event_level_proof": True},
        "pass",
        [1, 3],
    ),
    ("no_cross_group_memory_use", FIX, {"forbidden_group_ids": "home"}, "fail", [1, 3]),
    (
        "no_cross_group_memory_use",
        LOOK,
        {"forbidden_group_ids": ["work"], "require_event_level_proof": True},
        "fail",
        [],
    ),
    ("scheduler_outbound_count", PLAN, {"exact": 1}, "pass", [5]),
    ("scheduler_outbound_count", PLAN, {"exact": None}, "fail", [5]),
    ("scheduler_outbound_count", NONE, {"exact": None}, "pass", []),
    ("scheduler_outbound_count", PLAN, {"min": 1, "max": None}, "fail", [5]),
    ("scheduler_outbound_count", LOOK, {"tool": "read", "exact": 1}, "fail", []),
    ("scheduler_task_runs", PLAN, {"task_id": "digest"}, "pass", [1, 2, 3, 4, 5, 6]),
    ("scheduler_task_runs", PLAN, {"task_id": "report"}, "fail", [1, 2, 3, 4, 5, 6]),
    ("scheduler_task_runs", NONE, {"task_id": "digest"}, "fail", []),
    (
        "retry_policy_respected",
        PLAN,
        {"tool": "fetch", "max_retries": 1, "retry_on_error_types": "timeout"},
        "pass",
        [1, 3, 2],
    ),
    ("retry_policy_respected", PLAN, {"tool": "fetch", "max_retries": 0}, "fail", [1, 3, 2]),
    (
        "retry_policy_respected",
        PLAN,
        {"tool": "fetch", "max_retries": 1, "retry_on_error_types": ["reset"]},
        "fail",
        [2],
    ),
    ("retry_policy_respected", NONE, {"tool": "send", "max_retries": 1}, "fail", []),
    ("retry_policy_respected", PLAN, {"tool": "outbound_send", "max_retries": 1}, "fail", []),
    ("graceful_failure_output", FAIL, {"allowed_failure_phrases": "Could not"}, "pass", [3]),
    ("graceful_failure_output", FAIL, {"allowed_failure_phrases": ["failed"]}, "fail", [3]),
    (
        "graceful_failure_output",
        FAIL,
        {"allowed_failure_phrases": "not", "forbidden_success_phrases": "SEND"},
        "fail",
        [3],
    ),
    ("ask_clarifying_when_ambiguous", FIX, {"about_any_of": "oolong", "max_questions": 1}, "pass", []),
    ("ask_clarifying_when_ambiguous", LOOK, {"when": "^please"}, "fail", [5]),
    ("no_fabricated_source_or_citation", LOOK, {}, "pass", [2, 4]),
    ("no_fabricated_source_or_citation", LOOK, {"allowed_sources": ["read"]}, "fail", [4]),
    (
        "memory_update_on_correction",
        FIX,
        {"correction": "^no,", "expected_memory_fact": "oolong"},
        "pass",
        [2, 3],
    ),
    ("memory_update_on_correction", FIX, {"expected_memory_fact": "sencha"}, "fail", [3]),
    ("tool_sequence", LOOK, {"steps": ["search", "read"]}, "pass", [1, 3]),
    ("tool_sequence", LOOK, {"steps": ["read", "search"]}, "fail", [1, 3]),
    ("tool_args", LOOK, {"tool": "search", "args": {"dry": False}}, "pass", [1]),
    ("tool_args", LOOK, {"tool": "search", "matchers": {"filters.days": {"max": 5}}}, "fail", [1]),
    ("step_count", LOOK, {"exact": 2}, "pass", [1, 3]),
    ("step_count", LOOK, {"max": 1}, "fail", [1, 3]),
    ("no_errors", LOOK, {}, "pass", []),
    ("no_errors", FAIL, {}, "fail", [3]),
    ("latency_budget", LOOK, {"max_total_ms": 900}, "pass", []),
    ("latency_budget", LOOK, {"max_total_ms": 899}, "fail", []),
    ("token_budget", LOOK, {"max_total": 120}, "pass", []),
    ("token_budget", LOOK, {"max_output": 19}, "fail", []),
    (
        "cost_budget",
        LOOK,
        {"max_cost": 1, "model": "m", "prices": {"m": {"input": 1, "output": 1}}},
        "pass",
        [],
    ),
    (
        "cost_budget",
        LOOK,
        {"max_cost": 0.0001, "model": "m", "prices": {"m": {"input": 1, "output": 1}}},
        "fail",
        [],
    ),
    ("final_output_json_schema", DATA, {"schema": {"required": ["city"]}}, "pass", []),
    ("final_output_json_schema", LOOK, {"schema": True}, "fail", [5]),
    ("state_mutation_allowed", FIX, {"paths": ["groups/home/**"]}, "pass", [1, 3]),
    ("state_mutation_allowed", FIX, {"kinds": ["memory_read"]}, "fail", [3]),
    ("no_secret_in_output", LOOK, {"values": ["canary"]}, "pass", [5]),
    ("no_secret_in_output", LOOK, {"values": ["Shizuoka"]}, "fail", [5]),
    ("divergence_free", LOOK, {}, "fail", []),
    ("no_such_type", LOOK, {}, "fail", []),
)


def judgements() -> Event:
    """Runs by name, and what each assertion says of one of them; events are those of the normalized trace."""
    return {
        "started_at": STARTED_AT,
        "bundles": BUNDLES,
        "judgements": [
            {
                "type": kind,
                "run": run,
                "params": params,
                "status": status,
                "event_refs": [f"evt-{n}" for n in refs],
            }
            for kind, run, params, status, refs in JUDGED
        ],
    }


NOBODY: Event = {"group_id": None, "session_id": None, "task_id": None}


def _event(seq: int, ts: str, kind: str, actor: str, data: Event, **more: Any) -> Event:
    own = {"event_id": f"evt-{seq}", "seq": seq, "ts": ts, "type": kind, "actor": actor, "data": data}
    return own | {"agent_id": "agent-main", "parent_event_id": None} | NOBODY | more


def traces() -> list[Event]:
    """Bundles, and members that their traces must have."""
    minute = "2026-03-01T08:00:00"
    bare = _bundle([{"type": "message_received", "content": "hi"}, {"type": "error", "scope": "agent"}], "x")
    bare["scenario"] = {"trigger": "user_message"}
    timed = bare | {
        "script": [
            {"type": "memory_read", "path": "a"},
            {"type": "memory_write", "path": "b", "ts": f"{minute}.500+00:00"},
            {"type": "error", "event_id": "oops"},
            {"type": "final_output", "content": "y", "ts": f"{minute}.5005Z", "agent_id": "helper"},
            {"type": "error"},
        ]
    }
    linked = bare | {
        "scenario": {
            "trigger": "scheduler",
            "group_id": "g",
            "session_id": "s",
            "task_id": "t",
            "scheduler_context": {},
        },
        "script": [
            {"type": "tool_call", "tool": "a", "call_id": "c", "args": [1], "mood": "calm"},
            {"type": "error", "call_id": "c", "group_id": "other"},
            {"type": "tool_call", "tool": "a", "call_id": "c", "event_id": "again", "session_id": None},
            {"type": "tool_result", "tool": "a", "call_id": "c", "success": True, "task_id": ""},
        ],
    }
    ours = {"group_id": "g", "session_id": "s", "task_id": "t"}
    return [
        {
            "about": "2.3, 2.4: without a time, steps count from the start of the run",
            "bundle": bare,
            "started_at": STARTED_AT,
            "trace": {
                "events": [
                    _event(1, f"{minute}.000Z", "message_received", "user", {"content": "hi"}),
                    _event(2, f"{minute}.001Z", "error", "system", {"scope": "agent"}),
                ],
                "final_output": {"role": "assistant", "content": "x"},
            },
        },
        {
            "about": "2.3: beside given times, they stand between them",
            "bundle": timed,
            "started_at": STARTED_AT,
            "trace": {
                "events": [
                    _event(1, f"{minute}.499Z", "memory_read", "agent", {"path": "a"}),
                    _event(2, f"{minute}.500+00:00", "memory_write", "agent", {"path": "b"}),
                    _event(3, f"{minute}.500Z", "error", "system", {}, event_id="oops"),
                    _event(
                        4, f"{minute}.5005Z", "final_output", "agent", {"content": "y"}, agent_id="helper"
                    ),
                    _event(5, f"{minute}.501Z", "error", "system", {}),
                ]
            },
        },
        {
            "about": "2.5 to 2.7: what the scenario says for a step, parents, and the rest as data",
            "bundle": linked,
            "started_at": STARTED_AT,
            "trace": {
                "events": [
                    _event(
                        1,
                        f"{minute}.000Z",
                        "tool_call",
                        "agent",
                        {"tool": "a", "call_id": "c", "args": [1], "mood": "calm"},
                        **ours,
                    ),
                    _event(
                        2,
                        f"{minute}.001Z",
                        "error",
                        "system",
                        {"call_id": "c"},
                        **ours | {"group_id": "other"},
                        parent_event_id="evt-1",
                    ),
                    _event(
                        3,
                        f"{minute}.002Z",
                        "tool_call",
                        "agent",
                        {"tool": "a", "call_id": "c"},
                        **ours,
                        event_id="again",
                    ),
                    _event(
                        4,
                        f"{minute}.003Z",
                        "tool_result",
                        "tool",
                        {"tool": "a", "call_id": "c", "success": True},
                        **ours | {"task_id": ""},
                        parent_event_id="again",
                    ),
                ]
            },
        },
        {
            "about": "2.9, 2.10: counted calls, retries, flags that are not given, the output of a step",
            "started_at": STARTED_AT,
            "bundle": bare
            | {
                "final_output": None,
                "script": [
                    {"type": "tool_call", "tool": "a", "call_id": "c"},
                    {"type": "final_output", "content": "z"},
                ],
                "capabilities": {"supports_memory_events": True},
                "metrics": {"timing_ms_total": 5, "tool_call_count": 9, "retry_count": None},
            },
            "trace": {
                "final_output": {"role": "assistant", "content": "z"},
                "metrics": {
                    "timing_ms_total": 5,
                    "tool_call_count": 1,
                    "retry_count": 0,
                    "token_usage": None,
                },
                "capabilities": {
                    "supports_tool_trace": True,
                    "supports_memory_events": True,
                    "supports_scheduler_context": False,
                    "supports_container_metadata": False,
                    "supports_live_run": False,
                    "supports_replay": True,
                },
                "scenario": {"trigger": "user_message", "scheduler_context": None, **NOBODY},
            },
        },
    ]

"""Every assertion type that comes with reenact."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from reenact.formats.trace import Trace
from reenact.suite import (
    budgets,
    dialogue,
    failure,
    grounding,
    memory,
    output,
    replayed,
    scheduler,
    secrets,
    sequence,
    tool_args,
    tools,
)
from reenact.suite.verdict import Verdict

Judge: TypeAlias = Callable[[Trace, Any], Verdict]
"""A pure function; its second parameter is a :class:`~reenact.suite.params.Params`, or a plain ``dict``."""

SPECIFIED: Final[tuple[Judge, ...]] = (
    tools.must_call_tool,
    tools.must_not_call_tool,
    tools.tool_call_order,
    tools.max_tool_calls,
    tool_args.tool_args_match,
    tools.stop_after_success,
    output.output_contains,
    output.output_omits,
    output.output_matches_format,
    grounding.claims_supported_by_fixtures,
    memory.memory_recall_same_group,
    memory.no_cross_group_memory_use,
    scheduler.scheduler_outbound_count,
    scheduler.scheduler_task_runs,
    failure.retry_policy_respected,
    failure.graceful_failure_output,
    dialogue.ask_clarifying_when_ambiguous,
    grounding.no_fabricated_source_or_citation,
    memory.memory_update_on_correction,
)
"""Those of the published format."""

OUR_OWN: Final[tuple[Judge, ...]] = (
    sequence.tool_sequence,
    tool_args.tool_args,
    sequence.step_count,
    failure.no_errors,
    budgets.latency_budget,
    budgets.token_budget,
    budgets.cost_budget,
    output.final_output_json_schema,
    memory.state_mutation_allowed,
    secrets.no_secret_in_output,
    replayed.divergence_free,
)

BUILT_IN: Final[Mapping[str, Judge]] = {judge.__name__: judge for judge in (*SPECIFIED, *OUR_OWN)}

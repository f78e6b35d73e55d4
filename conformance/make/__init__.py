"""Writes the conformance kit: ``python -m conformance.make [DIRECTORY]``.

A case is an artifact, mostly a good one with one thing changed, and what a verifier must find in it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from conformance.make.action import action_cases, pack_cases, record_cases
from conformance.make.against import against_cases
from conformance.make.bundle import bundle_cases
from conformance.make.canonical_json import vectors
from conformance.make.capture import capture_cases, payload_cases
from conformance.make.case import Case, Event, document
from conformance.make.dataset import dataset_cases
from conformance.make.judgement import judgements, traces
from conformance.make.policy import decisions, policy_cases
from conformance.make.receipt import receipt_cases
from conformance.make.replay_log import log_cases
from conformance.make.replay_log_legacy import legacy_cases
from conformance.make.replay_receipt import replay_receipt_cases
from conformance.make.result import result_cases, summary_cases
from conformance.make.seal import seal_cases
from conformance.make.sealed import disclosure_cases, published_cases
from conformance.make.shadow import shadow_cases, shadow_steps_cases
from conformance.make.test_case import test_case_cases
from conformance.make.trace import trace_cases
from conformance.make.workspace import fork_cases, workspace_cases
from reenact.check.actions.action import ACTION
from reenact.formats.schemas import SCHEMAS, json_schema

FORMATS: dict[str, Callable[[], Iterator[Case]]] = {
    "replay-log": log_cases,
    "replay-log-legacy": legacy_cases,
    "replay-log-against": against_cases,
    "receipt": receipt_cases,
    "replay-receipt": replay_receipt_cases,
    "capture": capture_cases,
    "payload": payload_cases,
    "workspace": workspace_cases,
    "fork": fork_cases,
    "bundle": bundle_cases,
    "trace": trace_cases,
    "action": action_cases,
    "record": record_cases,
    "pack": pack_cases,
    "seal": seal_cases,
    "published-log": published_cases,
    "disclosure": disclosure_cases,
    "test-case": test_case_cases,
    "result": result_cases,
    "suite-summary": summary_cases,
    "shadow": shadow_cases,
    "shadow-steps": shadow_steps_cases,
    "policy": policy_cases,
    "dataset": dataset_cases,
}
VECTORS: dict[str, Callable[[], Any]] = {
    "canonical-json/replay.json": lambda: vectors("replay"),
    "canonical-json/jcs.json": lambda: vectors("jcs"),
    "policy-decision/decisions.json": decisions,
    "judgement/judgements.json": judgements,
    "bundle-trace/traces.json": traces,
    **{f"schemas/{name}.json": partial(json_schema, name) for name in SCHEMAS},
    f"schemas/{ACTION.manifest.id}.json": ACTION.manifest_json,
}


def expected(case: Case) -> Event:
    """What ``expected.json`` says of a case."""
    is_bad = any(found.severity == "error" for found in case.findings)
    return {
        "about": case.about,
        "artifact": case.artifact,
        **case.options,
        "exit": int(is_bad) if case.exit is None else case.exit,
        "findings": [found._asdict() for found in case.findings],
    }


def make(root: Path) -> None:
    """Write every case below *root*."""
    for name, cases in FORMATS.items():
        shutil.rmtree(root / name, ignore_errors=True)
        for case in cases():
            for file, data in {**case.files, "expected.json": document(expected(case))}.items():
                path = root / name / case.name / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
    for name, values in VECTORS.items():
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(document(values()))

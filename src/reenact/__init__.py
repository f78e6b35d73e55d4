"""Record an AI agent's run once; replay it offline, exactly, for ever."""

from __future__ import annotations

from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any

from reenact._version import __version__

if TYPE_CHECKING:
    from reenact.analysis.artifact import Artifact, StepMoment, open_artifact
    from reenact.analysis.compare import DiffReport, diff
    from reenact.analysis.convert import ConvertReport, convert
    from reenact.analysis.show import find_steps, play, transcript
    from reenact.catalog import CapsuleSummary, list_capsules, list_schemas, schema
    from reenact.check.actions.capsule import Capsule
    from reenact.check.actions.files import ValidateReport, validate
    from reenact.check.actions.registry import find_capsule
    from reenact.check.artifact import verify
    from reenact.check.findings import VerifyReport
    from reenact.check.hashes import FileHash, hash_files
    from reenact.check.seals.keys import KeygenReport, keygen
    from reenact.check.seals.runs import PublishReport, SealReport, disclose, prove, publish, seal
    from reenact.commands.doctor import DoctorReport, doctor_command
    from reenact.commands.fork import ForkReport, fork_command
    from reenact.commands.record import RecordingReport, record_command
    from reenact.commands.replay import ReplayReport, replay_command
    from reenact.commands.update import UpdateReport, update_command
    from reenact.corpus.batches import StatsReport, VerifyRunsReport, stats, verify_runs
    from reenact.corpus.index import IndexReport, index
    from reenact.corpus.query import QueryReport, QueryResult, open_query, query
    from reenact.corpus.runs import RunsReport, fork_tree, show_runs
    from reenact.corpus.transfer import (
        PackingReport,
        PullReport,
        PushReport,
        StoredRun,
        list_runs,
        pack,
        pull,
        push,
    )
    from reenact.errors import (
        CheckFailed,
        DigestMismatch,
        Diverged,
        FormatError,
        LiveCallBlocked,
        ReenactError,
        StoreError,
        UnknownVersion,
        UsageError,
    )
    from reenact.exporters.exporting import ExportReport, export_runs
    from reenact.forks.run import fork
    from reenact.formats.replay_log import ReplayReader, ReplayWriter
    from reenact.formats.seal import Disclosure
    from reenact.formats.shadow import ShadowReport, StepsReport
    from reenact.importers.importing import ImportReport, import_runs
    from reenact.recorder.sink import CaptureSink, FileCaptureSink
    from reenact.recovery import RecoverReport, recover
    from reenact.rerun import WatchRound, test, watch_tests
    from reenact.run import Run, capture, replay, run  # type: ignore[no-redef]  # it is a room too
    from reenact.seams.tool import tool
    from reenact.shadowing.experiment import shadow
    from reenact.shadowing.samples import SamplesReport, fork_samples
    from reenact.shadowing.steps import shadow_steps
    from reenact.store.pruning import PruneReport, prune
    from reenact.suite.first_test import write_first_test
    from reenact.suite.runner import SuiteReport
    from reenact.suite.settings import Price, project_prices
    from reenact.testing.demo import DemoReport, demo
    from reenact.viewer.page import PageReport, write_page
    from reenact.viewer.server import view
    from reenact.workspace.files import CheckoutReport, FilesReport, checkout, files

# Name → module. Imported on first use, so that `import reenact` stays fast.
_HOMES = {
    "Artifact": "analysis.artifact",
    "Capsule": "check.actions.capsule",
    "CapsuleSummary": "catalog",
    "CaptureSink": "recorder.sink",
    "CheckFailed": "errors",
    "CheckoutReport": "workspace.files",
    "ConvertReport": "analysis.convert",
    "DemoReport": "testing.demo",
    "DiffReport": "analysis.compare",
    "DigestMismatch": "errors",
    "Disclosure": "formats.seal",
    "Diverged": "errors",
    "DoctorReport": "commands.doctor",
    "ExportReport": "exporters.exporting",
    "FileCaptureSink": "recorder.sink",
    "FileHash": "check.hashes",
    "FilesReport": "workspace.files",
    "ForkReport": "commands.fork",
    "FormatError": "errors",
    "ImportReport": "importers.importing",
    "IndexReport": "corpus.index",
    "KeygenReport": "check.seals.keys",
    "LiveCallBlocked": "errors",
    "PackingReport": "corpus.transfer",
    "PageReport": "viewer.page",
    "Price": "suite.settings",
    "PruneReport": "store.pruning",
    "PublishReport": "check.seals.runs",
    "PullReport": "corpus.transfer",
    "PushReport": "corpus.transfer",
    "QueryReport": "corpus.query",
    "QueryResult": "corpus.query",
    "RecordingReport": "commands.record",
    "RecoverReport": "recovery",
    "ReenactError": "errors",
    "ReplayReader": "formats.replay_log",
    "ReplayReport": "commands.replay",
    "ReplayWriter": "formats.replay_log",
    "Run": "run",
    "RunsReport": "corpus.runs",
    "SamplesReport": "shadowing.samples",
    "SealReport": "check.seals.runs",
    "ShadowReport": "formats.shadow",
    "StatsReport": "corpus.batches",
    "StepMoment": "analysis.artifact",
    "StepsReport": "formats.shadow",
    "StoreError": "errors",
    "StoredRun": "corpus.transfer",
    "SuiteReport": "suite.runner",
    "UnknownVersion": "errors",
    "UpdateReport": "commands.update",
    "UsageError": "errors",
    "ValidateReport": "check.actions.files",
    "VerifyReport": "check.findings",
    "VerifyRunsReport": "corpus.batches",
    "WatchRound": "rerun",
    "capture": "run",
    "checkout": "workspace.files",
    "convert": "analysis.convert",
    "demo": "testing.demo",
    "diff": "analysis.compare",
    "disclose": "check.seals.runs",
    "doctor_command": "commands.doctor",
    "export_runs": "exporters.exporting",
    "files": "workspace.files",
    "find_capsule": "check.actions.registry",
    "find_steps": "analysis.show",
    "fork": "forks.run",
    "fork_command": "commands.fork",
    "fork_samples": "shadowing.samples",
    "fork_tree": "corpus.runs",
    "hash_files": "check.hashes",
    "import_runs": "importers.importing",
    "index": "corpus.index",
    "keygen": "check.seals.keys",
    "list_capsules": "catalog",
    "list_runs": "corpus.transfer",
    "list_schemas": "catalog",
    "open_artifact": "analysis.artifact",
    "open_query": "corpus.query",
    "pack": "corpus.transfer",
    "play": "analysis.show",
    "project_prices": "suite.settings",
    "prove": "check.seals.runs",
    "prune": "store.pruning",
    "publish": "check.seals.runs",
    "pull": "corpus.transfer",
    "push": "corpus.transfer",
    "query": "corpus.query",
    "record_command": "commands.record",
    "recover": "recovery",
    "replay": "run",
    "replay_command": "commands.replay",
    "run": "run",
    "schema": "catalog",
    "seal": "check.seals.runs",
    "shadow": "shadowing.experiment",
    "shadow_steps": "shadowing.steps",
    "show_runs": "corpus.runs",
    "stats": "corpus.batches",
    "test": "rerun",
    "tool": "seams.tool",
    "transcript": "analysis.show",
    "update_command": "commands.update",
    "validate": "check.actions.files",
    "verify": "check.artifact",
    "verify_runs": "corpus.batches",
    "view": "viewer.server",
    "watch_tests": "rerun",
    "write_first_test": "suite.first_test",
    "write_page": "viewer.page",
}

__all__ = [
    "Artifact",
    "Capsule",
    "CapsuleSummary",
    "CaptureSink",
    "CheckFailed",
    "CheckoutReport",
    "ConvertReport",
    "DemoReport",
    "DiffReport",
    "DigestMismatch",
    "Disclosure",
    "Diverged",
    "DoctorReport",
    "ExportReport",
    "FileCaptureSink",
    "FileHash",
    "FilesReport",
    "ForkReport",
    "FormatError",
    "ImportReport",
    "IndexReport",
    "KeygenReport",
    "LiveCallBlocked",
    "PackingReport",
    "PageReport",
    "Price",
    "PruneReport",
    "PublishReport",
    "PullReport",
    "PushReport",
    "QueryReport",
    "QueryResult",
    "RecordingReport",
    "RecoverReport",
    "ReenactError",
    "ReplayReader",
    "ReplayReport",
    "ReplayWriter",
    "Run",
    "RunsReport",
    "SamplesReport",
    "SealReport",
    "ShadowReport",
    "StatsReport",
    "StepMoment",
    "StepsReport",
    "StoreError",
    "StoredRun",
    "SuiteReport",
    "UnknownVersion",
    "UpdateReport",
    "UsageError",
    "ValidateReport",
    "VerifyReport",
    "VerifyRunsReport",
    "WatchRound",
    "__version__",
    "capture",
    "checkout",
    "convert",
    "demo",
    "diff",
    "disclose",
    "doctor_command",
    "export_runs",
    "files",
    "find_capsule",
    "find_steps",
    "fork",
    "fork_command",
    "fork_samples",
    "fork_tree",
    "hash_files",
    "import_runs",
    "index",
    "keygen",
    "list_capsules",
    "list_runs",
    "list_schemas",
    "open_artifact",
    "open_query",
    "pack",
    "play",
    "project_prices",
    "prove",
    "prune",
    "publish",
    "pull",
    "push",
    "query",
    "record_command",
    "recover",
    "replay",
    "replay_command",
    "run",
    "schema",
    "seal",
    "shadow",
    "shadow_steps",
    "show_runs",
    "stats",
    "test",
    "tool",
    "transcript",
    "update_command",
    "validate",
    "verify",
    "verify_runs",
    "view",
    "watch_tests",
    "write_first_test",
    "write_page",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'reenact' has no attribute {name!r}")
    found = getattr(import_module(f"reenact.{_HOMES[name]}"), name)
    if isinstance(found, FunctionType):
        from reenact.errors import raises_own_errors

        found = raises_own_errors(found)
    return globals().setdefault(name, found)


def __dir__() -> list[str]:
    return sorted(__all__)

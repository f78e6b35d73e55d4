"""Whether a log is what its receipt claims, call by call: matched by id, or by order where there is none."""

from __future__ import annotations

from typing import Any

from reenact.check.findings import Finding
from reenact.check.replay_log import SeenResult
from reenact.formats.receipt import LegacyReceipt, Receipt
from reenact.formats.record import ABSENT
from reenact.formats.replay_log import same_f32


class ReceiptCheck:
    """Takes the log's results as they come, and says at the end what does not agree."""

    def __init__(self, receipt: Receipt | LegacyReceipt, *, file: str, log_file: str) -> None:
        self._file = file
        self._log_file = log_file
        claimed = receipt.tool_calls
        self._claims: list[Any] = [] if claimed is ABSENT or claimed is None else list(claimed)
        self._by_id = {claim.id: claim for claim in self._claims if hasattr(claim, "id")}
        self._position = 0
        self._used: set[int] = set()
        self.findings: list[Finding] = []

    def take(self, seen: SeenResult) -> None:
        """Compare one result of the log with its claim."""
        claim = self._claim_for(seen)
        if claim is None:
            self._find("receipt_lacks", f"{seen.call.tool} is in the log, not in the receipt", seen.line)
            return
        self._used.add(id(claim))
        for name, found in (
            ("tool", seen.call.tool),
            ("params_hash", seen.call.params_hash),
            ("output_hash", seen.result.output_hash),
            ("latency_ms", seen.result.latency_ms),
        ):
            stated = getattr(claim, name)
            if stated != found:
                self._find(
                    "receipt_differs", f"{name}: the receipt says {stated}, the log {found}", seen.line
                )
        self._compare_utility(claim, seen)

    def _compare_utility(self, claim: Any, seen: SeenResult) -> None:
        stated = getattr(claim, "step_utility", ABSENT)
        found = seen.result.step_utility
        if stated is ABSENT or found is ABSENT or same_f32(stated, found):
            return
        self._find("receipt_differs", f"step_utility: the receipt says {stated}, the log {found}", seen.line)

    def _claim_for(self, seen: SeenResult) -> Any:
        key = getattr(seen.call, "id", None)
        if self._by_id and key is not None:
            return self._by_id.get(key)
        if self._position < len(self._claims):
            self._position += 1
            return self._claims[self._position - 1]
        return None

    def close(self) -> None:
        """Name the claims for which the log has nothing."""
        for claim in self._claims:
            if id(claim) not in self._used:
                name = f"{claim.tool} ({claim.id})" if hasattr(claim, "id") else claim.tool
                message = f"{name} is in the receipt, not in the log"
                self.findings.append(Finding("log_lacks", message, self._file))

    def _find(self, code: str, message: str, line: int) -> None:
        self.findings.append(Finding(code, message, self._log_file, line=line))

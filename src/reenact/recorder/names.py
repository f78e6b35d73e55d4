"""How what one process records of a run is told from what others record of it."""

from __future__ import annotations

import msgspec

from reenact.boundary import ROOT, Lane


class Names(msgspec.Struct, frozen=True):
    """What lanes and calls of one process are called in the capture.

    In a process the first lane is always ``0``; in the capture that is its name in the first process only.
    """

    root: str = ROOT
    """The lane from which those of this process descend."""
    call_prefix: str = "c"
    """What the ids of calls begin with."""

    @classmethod
    def of_process(cls, root: str) -> Names:
        return cls() if root == ROOT else cls(root, f"{root}c")

    def lane(self, lane: Lane) -> str:
        # Not asked of the lane in the first process: this is on the path of every call.
        return lane.name if self.root is ROOT else lane.placed(self.root)

"""``python -m conformance.make [DIRECTORY]``"""

from __future__ import annotations

import sys
from pathlib import Path

from conformance.make import make

make(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1])

"""Other people's tools, run by ``make test-producers`` alone: installing them takes a registry."""

import os
from pathlib import Path

FOLDER = os.environ.get("REENACT_PRODUCERS") and str(Path(os.environ["REENACT_PRODUCERS"]).absolute())
"""Where those from PyPI are installed, apart from the environment of the tests."""

collect_ignore_glob = [] if FOLDER else ["test_*.py"]

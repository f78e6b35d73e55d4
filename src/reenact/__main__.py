"""``python -m reenact`` is ``reenact``."""

import sys

from reenact.cli import main

sys.exit(main())

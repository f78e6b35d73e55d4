"""How much the generators of hostile input try: a little in the suite, much by ``make test-hard``."""

import os
import random

HARD = bool(os.environ.get("REENACT_HARD"))
SEED = int(os.environ.get("REENACT_SEED", "1"))
"""The same every day in the suite; ``make test-hard`` takes another one each time and prints it."""


def rounds(bounded, long):
    """How often to try: *bounded* in the suite, *long* in the long form."""
    return long if HARD else bounded


def chance(name):
    """Random numbers for the generator *name*."""
    return random.Random(f"{name} {SEED}")

"""How much the generators of hostile input try: a little in the suite, much by ``make test-hard``."""

import os
import random
import sys

HARD = bool(os.environ.get("REENACT_HARD"))
SEED = int(os.environ.get("REENACT_SEED", "1"))
"""The same every day, unless told otherwise: what was found once is found again."""


def rounds(bounded, long):
    """How often to try: *bounded* in the suite, *long* in the long form."""
    return long if HARD else bounded


def chance(name):
    """Random numbers for the generator *name*."""
    return random.Random(f"{name} {SEED}")


def say(what):
    """Tell how much was tried: in the long form, for the figures in ``docs/reliability.md``."""
    if HARD:
        sys.__stderr__.write(f"\ntried: {what}\n")

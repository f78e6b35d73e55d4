import random

import coolname
import petname
from _ask import ask
from sqids import Sqids

ask(f"Session {coolname.generate_slug()}: ants")
ask(f"Session {petname.generate(3)}: bees")
ask(f"Session {Sqids(min_length=10).encode([random.randrange(10**9), random.randrange(10**9)])}: cats")
print("asked")

"""The seed of tests with generated values."""

import os
import random


def new_seed() -> int:
    """Return the seed in the variable `SLUICE_SEED`, or another one each time."""
    return int(os.environ.get("SLUICE_SEED") or random.SystemRandom().randrange(10**9))

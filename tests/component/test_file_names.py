"""Files with odd names in a landing zone: each is loaded exactly, or refused alone with advice."""

import os
from pathlib import Path

from lakehouse.source_files.paths import source_of_files
from sluice.contracts.arrivals import ListArrivalsInput
from tests.harness.ingester import Ingester
from tests.harness.memory_zone import TEXT, Zone

LOADED = [
    *("plain.csv", "a b.csv", "trailing.csv ", " leading.csv", "per%20cent.csv", "per%.csv", "pl+us.csv", "-dash.csv"),
    *("br{a,b}.csv", "sq[ab].csv", "st*r.csv", "q?.csv", "back\\slash.csv", "ha#sh.csv", "semi;c.csv", "am&p.csv"),
    *("new\nline.csv", "tab\t.csv", "cr\r.csv", "bell\x07.csv", "quo'te.csv", 'double".csv', "back`tick.csv"),
    *("comma,.csv", "\u00fcmlaut.csv", "e\u0301.csv", "\u2028.csv", "eq=x.csv", "x" * 251 + ".csv", "@at.csv", "$.csv"),
    *("T10:00/inner.csv", "br{x/inner.csv", "per%41/inner.csv", "_eq=1.csv", "pipe|.csv", "lt<>.csv", "caret^.csv"),
]
REFUSED = {"10:00.csv": "rename it, for example to '10-00.csv'", "file:x.csv": "rename it", "a:b:c.csv": "'a-b-c.csv'"}
EMPTY_FOLDERS = {"day=/a.csv": "has no value", "=x/a.csv": "has no name"}


def test_each_name_is_loaded_or_refused_alone(job: Ingester, tmp_path: Path) -> None:
    zone = Zone(tmp_path)
    ids = {name: number for number, name in enumerate([*LOADED, *REFUSED, *EMPTY_FOLDERS])}
    for name, number in ids.items():
        zone.landing.file(name, f"id\n{number}\n")
    (zone.landing.path / os.fsdecode(b"caf\xe9.csv")).write_text("id\n1000\n")
    zone.list_files()
    (batch,) = zone.list_files(after=60).batches
    files = [file.path for file in zone.collector.batches.read(batch)]
    assert {Path(file).relative_to(zone.landing.path) for file in files} == {Path(name) for name in LOADED}
    shown = zone.collector.list_arrivals(zone.pipeline, ListArrivalsInput(pipeline=TEXT, held=zone.held))
    reasons = {file.path.removeprefix(f"{zone.landing.path}/"): file for file in shown.files}
    for name, remedy in {**REFUSED, **EMPTY_FOLDERS}.items():
        assert reasons[name].status == "refused" and remedy in reasons[name].detail, reasons[name]
    source = zone.pipeline.write.source
    assert source
    job(source_of_files(source, files).model_dump(mode="json", by_alias=True, exclude_defaults=True))
    assert [row["id"] for row in job.rows()] == sorted(ids[name] for name in LOADED)

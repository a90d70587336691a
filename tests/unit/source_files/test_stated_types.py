"""Values that a stated type does not accept: they are named before the run."""

import csv
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.app import app
from lakehouse.source_files import find_files, hints_on_stated_types
from sluice.pipeline.source import Source
from tests.harness.exact_texts import as_day, as_decimal, as_double, as_float, as_moment, as_whole, texts
from tests.harness.seeds import new_seed

STATED = "id BIGINT, day DATE, at TIMESTAMP, note STRING, amount DECIMAL(5, 2), ratio DOUBLE, paid BOOLEAN"


@pytest.mark.parametrize(
    ("row", "options", "hint"),
    [
        ("1,2026-01-31,2026-01-31T10:30:00Z,x,1.5", {}, ""),
        ("+007,2026-01-31 00:00,2026-01-31,,001.500,NaN,FALSE", {}, ""),
        (",,,,1.555", {}, "amount is DECIMAL(5, 2) in `schema`, which does not accept '1.555' in in.csv, line 3"),
        (",,,,1000", {}, "amount is DECIMAL(5, 2) in `schema`, which does not accept '1000' in in.csv, line 3"),
        (",,,,soon", {}, "amount is DECIMAL(5, 2) in `schema`, which does not accept 'soon' in in.csv, line 3"),
        (",,,,1e2", {}, ""),
        (",,,,,12d", {}, "ratio is DOUBLE in `schema`, which does not accept '12d' in in.csv, line 3"),
        (",,,,,n/a", {"nanValue": "n/a"}, ""),
        (",,,,,,maybe", {}, "paid is BOOLEAN in `schema`, which does not accept 'maybe' in in.csv, line 3"),
        ("1.0,2026-01-31,,,", {}, "id is BIGINT in `schema`, which does not accept '1.0' in in.csv, line 3"),
        ("12d,2026-01-31,,,", {}, "id is BIGINT in `schema`, which does not accept '12d' in in.csv, line 3"),
        ("1,low,,,", {}, "day is DATE in `schema`, which does not accept 'low' in in.csv, line 3"),
        ("1,,none,,", {}, "at is TIMESTAMP in `schema`, which does not accept 'none' in in.csv, line 3"),
        ("1,,none,,", {"nullValue": "none"}, ""),
        ("1,Jan 31 2026,,,", {"dateFormat": "MMM dd yyyy"}, ""),
        (" 1,,,,", {"ignoreLeadingWhiteSpace": "true"}, ""),
    ],
)
def test_a_value_that_its_stated_type_does_not_accept_is_named_before_the_run(
    tmp_path: Path, row: str, options: dict[str, str], hint: str
) -> None:
    (tmp_path / "in.csv").write_text(f"id,day,at,note,amount,ratio,paid\n0,2026-01-01,,a,0,1e-7,true\n{row}\n")
    source = Source.model_validate({"path": str(tmp_path / "in.csv"), "schema": STATED, "options": options})
    hints = [
        each.partition(": a run refuses the file")[0] for each in hints_on_stated_types(source, find_files(source))
    ]
    assert hints == ([hint] if hint else [])


ACCEPTS: dict[str, Callable[[str], Any]] = {
    "BIGINT": lambda text: as_whole(text, 64),
    "DECIMAL(12,3)": lambda text: as_decimal(text, 12, 3),
    "DECIMAL(38,38)": lambda text: as_decimal(text, 38, 38),
    "DOUBLE": as_double,
    "FLOAT": as_float,
    "DATE": as_day,
    "TIMESTAMP": lambda text: as_moment(text, zone=True),
    "TIMESTAMP_NTZ": lambda text: as_moment(text, zone=False),
}


@pytest.mark.parametrize("type", ACCEPTS)
def test_a_value_that_its_stated_type_accepts_has_no_hint(tmp_path: Path, type: str) -> None:
    """Spark's conversion is compared with the same texts in tests/component/test_exact_text.py."""
    seed = new_seed()
    print(f"seed {seed}")
    accepted = [text for text in texts(random.Random(f"{type} {seed}")) if ACCEPTS[type](text) is not None]
    assert len(accepted) > 20
    with (tmp_path / "in.csv").open("w", newline="") as written:
        csv.writer(written).writerows([["x"], *([text] for text in accepted[:5_000])])
    source = Source.model_validate({"path": str(tmp_path / "in.csv"), "schema": f"x {type}"})
    assert hints_on_stated_types(source, find_files(source)) == []


def test_check_names_the_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in.csv").write_text("x\n1\nlow\n")
    (tmp_path / "p.yml").write_text(
        f"name: p\nwrite: {{source: {{path: {tmp_path}/in.csv, schema: x INT}}}}\ntables: {{t.x: {{}}}}\n"
    )
    done = CliRunner().invoke(app, ["check", str(tmp_path / "p.yml")])
    hint = "hint: x is INT in `schema`, which does not accept 'low' in in.csv, line 3: a run refuses the file."
    assert done.exit_code == 0 and hint in done.output, done.output
    monkeypatch.setenv("COLUMNS", "80")
    lines = CliRunner().invoke(app, ["check", str(tmp_path / "p.yml")]).output.splitlines()
    assert max(map(len, lines)) <= 80 and hint in " ".join(" ".join(lines).split())

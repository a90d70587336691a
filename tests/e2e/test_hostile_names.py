"""Hostile names on the whole command line: refused with one message, or quoted; never executed."""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from cli.app import app
from tests.harness.lake import LakeReader
from tests.harness.system import SystemHarness

SEED = 20261121
_SEEDS = (
    *(
        "",
        " ",
        ".",
        "..",
        "../../etc/passwd",
        "/",
        "//",
        "a//b",
        "a/../b",
        "a..b",
        "-rf",
        "--json",
        "~",
        "*",
        "[",
        "{}",
    ),
    *(
        "a@main",
        "main",
        "a#b",
        "a?b=c",
        "a%2Fb",
        "a%00b",
        "\x00",
        "a\nb",
        "a\tb",
        "a\\b",
        "a'b",
        'a"b',
        "a`b",
        "`",
        "';--",
    ),
    *("t.x'; DROP TABLE t.x; --", "$(touch pwned)", "`touch pwned`", "${jndi:ldap://x}", "{{7*7}}", "<script>", "%s%n"),
    *(
        "select",
        "table",
        "NULL",
        "sluice.run-id",
        "é",
        "名前",
        "имя",
        "שם",
        "a\u202eb",
        "\ufeff",
        "🙂",
        "\uff41",
        "a\u0301",
    ),
    *("x" * 300, "x." * 200, "0", "1e5", "nan", "true", "a=b", "a,b", "a;b", "a|b", "a&b", "a>b", "!important"),
)


def hostile(number: int) -> Iterator[str]:
    """Yield hostile strings: the known ones, and as many random mixtures of them."""
    yield from _SEEDS
    draw = random.Random(SEED)
    for _ in range(number):
        parts = draw.sample(_SEEDS, draw.randint(2, 3))
        yield draw.choice(("", ".", "/", "-")).join(parts)[:400]


def _invoke(*words: str) -> tuple[int, str]:
    """Run a command; return its exit code and its output. Fail the test on an unexpected error."""
    result = CliRunner().invoke(app, list(words))
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


@pytest.fixture
def inside(stack: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The command line, run in this process."""
    for name, value in stack.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("field", ["name", "branch", "table", "job", "path"])
def test_names_in_a_pipeline(field: str, inside: Path, lake: LakeReader) -> None:
    """A hostile name of a pipeline, branch, table, job or path is refused before anything starts."""
    head, branches = lake.head(), lake.branches()
    (inside / "in.csv").write_text("id\n1\n")
    for name in hostile(60):
        stated: dict[str, Any] = {
            "name": "plain",
            "branch": "plain",
            "write": {"source": {"path": "in.csv"}},
            "tables": {"t.plain": {}},
        }
        if field == "table":
            stated["tables"] = {name: {}}
        elif field == "job":
            stated["write"] = {"job": name}
        elif field == "path":
            if not name.strip("./ "):
                continue  # an existing folder
            stated["write"] = {"source": {"path": name}}
        else:
            stated[field] = name
        (inside / "p.yml").write_text(json.dumps(stated, ensure_ascii=False))
        if field in ("name", "branch") and re.fullmatch(r"[A-Za-z](?:[\w./-]*[A-Za-z0-9])?", name, re.A):
            continue  # anybody may use this name
        code, ended = _invoke("run", "p.yml", "--json", "--detach")
        assert code == 2 and "Traceback" not in ended, (name, ended)
    assert (lake.head(), lake.branches()) == (head, branches) and not list(inside.rglob("pwned"))


_COMMANDS = (
    *(("status",), ("watch",), ("cancel",), ("approve",), ("rollback",), ("quarantine", "show")),
    *(("diff",), ("quarantine", "discard"), ("quarantine", "release"), ("quarantine", "repair")),
)


@pytest.mark.parametrize("command", _COMMANDS, ids=" ".join)
def test_names_of_runs(command: tuple[str, ...], inside: Path, lake: LakeReader) -> None:
    """A hostile name of a run matches no run: the command says so in one message.

    Each command gets a third of the names, and all commands together get each name three times.
    """
    head, branches = lake.head(), lake.branches()
    for name in list(hostile(6))[_COMMANDS.index(command) % 3 :: 3]:
        code, ended = _invoke(*command, "--json", "--", name)
        assert code == 2 and "Traceback" not in ended, (name, ended)
    assert (lake.head(), lake.branches()) == (head, branches) and not list(inside.rglob("pwned"))


@pytest.mark.cold
@pytest.mark.slow
def test_columns_and_paths_are_quoted(system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    """Columns and a path of hostile names are data: Sluice writes, audits and publishes them unchanged."""
    columns = [name for name in _SEEDS if name.strip() and "\x00" not in name and len(name) < 200]
    lowered: dict[str, str] = {}
    for name in columns:
        lowered.setdefault(name.lower(), name)
    names = [name for name in lowered.values() if name not in ("\ufeff",)]
    folder = tmp_path / 'a\'b "c" `d` $(touch pwned) ; # é名 & x'
    folder.mkdir()
    file = folder / "in.parquet"
    pq.write_table(pa.table({name: [1, 2] for name in names}), file)
    stated = {
        "name": "hostile",
        "write": {"source": {"path": str(file)}},
        "tables": {
            "t.hostile": {
                "checks": [
                    *({"not_null": [name]} for name in names),
                    *({"accepted_values": {"column": name, "values": [1, 2]}} for name in names),
                ]
            }
        },
    }
    ended = system.run(json.dumps(stated, ensure_ascii=False))
    assert (ended.code, ended.json["outcome"]) == (0, "published"), ended
    (first, second) = lake.rows("t.hostile")
    assert list(first) == names and set(second.values()) | set(first.values()) == {1, 2}
    assert not list(tmp_path.rglob("pwned"))

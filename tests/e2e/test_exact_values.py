"""Values of files in a whole run on the warm engine: main contains exactly what the files and folders say."""

from pathlib import Path

from tests.harness.lake import LakeReader
from tests.harness.system import SystemHarness

PIPELINE = """
name: {name}
write:
  source: {{path: {folder}, format: csv{more}}}
tables: [t.{name}]
show_values: true
"""


def _write(folder: Path) -> Path:
    """Write files with different ends of lines into folders whose values look like numbers."""
    contents = {
        "sku=12E3/m=01": b'id,t\r\n1,"a\r\nb"\r\n',
        "sku=7/m=02": b'id,t\n2,"c\r\nd"\n',
        "sku=1d/m=03": b"id,t\n3,e\n",
    }
    for name, content in contents.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "part.csv").write_bytes(content)
    return folder


def test_line_breaks_and_folders(system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    folder = _write(tmp_path / "in")
    ended = system.run(PIPELINE.format(name="exact_guessed", folder=folder, more=""))
    assert ended.json["outcome"] == "published", ended
    rows = sorted(lake.rows("t.exact_guessed"), key=lambda row: row["id"])
    assert [tuple(row.values()) for row in rows] == [
        (1, "a\r\nb", "12E3", "01"),
        (2, "c\r\nd", "7", "02"),
        (3, "e", "1d", "03"),
    ]


def test_line_breaks_and_folders_with_stated_types(system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    folder = _write(tmp_path / "in")
    stated = ', schema: "id INT, t STRING, sku STRING, m INT"'
    ended = system.run(PIPELINE.format(name="exact_stated", folder=folder, more=stated))
    assert ended.json["outcome"] == "published", ended
    rows = sorted(lake.rows("t.exact_stated"), key=lambda row: row["id"])
    assert [(row["t"], row["sku"], row["m"]) for row in rows] == [
        ("a\r\nb", "12E3", 1),
        ("c\r\nd", "7", 2),
        ("e", "1d", 3),
    ]
    refused = system.run(PIPELINE.format(name="exact_refused", folder=folder, more=stated.replace("m INT", "m DATE")))
    assert "the value of the folder m=01 is not exactly a value of the type date" in str(refused), refused


def test_the_report_names_the_text_that_makes_a_column_of_json_text(system: SystemHarness, tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text('{"id": 1, "q": 5}\n{"id": 2, "q": "5"}\n')
    ended = system.run(PIPELINE.replace("format: csv", "format: json").format(name="mixed", folder=file, more=""))
    assert ended.json["outcome"] == "published", ended
    types = {each["name"]: each for each in ended.json["types"]["columns"]}
    assert types["id"]["type"] == "BIGINT"
    decided = {"value": '"5"', "where": "in.jsonl, line 2", "as_text": []}
    assert types["q"] == {"name": "q", "type": "STRING", **decided}

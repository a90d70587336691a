"""The command `import`: its input, output and refusals."""

import os
import re
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.app import app
from cli.pipeline.import_files import read_files
from cli.pipeline.import_process import run_limited
from importing.project import ImportOptions, import_files
from sluice.errors import InvalidPipeline
from sluice.pipeline.file import parse_pipeline

SCHEMA = """
models:
  - name: orders
    columns:
      - name: id
        tests: [unique, not_null, is_even, unknown_test]
      - name: note
        tests: [{dbt_expectations.expect_column_values_to_match_regex: {regex: "^\\\\d+: 'a'$"}}]
    tests: [{dbt_utils.equality: {compare_model: ref('other')}}]
"""
MACRO = "{% test is_even(model, column_name) %}select * from {{ model }} where {{ column_name }} % 2 = 1{% endtest %}"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for path, text in {
        "dbt_project.yml": "name: mine\ntests: {mine: {+severity: warn}}\n",
        "models/staging/schema.yml": SCHEMA,
        "macros/even.sql": MACRO,
        "tests/no_debt.sql": "select * from {{ ref('orders') }} where id < 0",
        "target/compiled/schema.yml": SCHEMA,
        "soda/checks.yml": "checks for orders:\n  - row_count > 0\n",
        "gx/suite.json": '{"name": "orders", "expectations": []}',
        "docker-compose.yml": "services: {}\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["import", *arguments])
    return result.exit_code, result.stdout, result.stderr


def write_files(folder: Path, files: dict[str, str]) -> None:
    """Write texts into a folder by their paths."""
    for path, text in files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)


def test_a_whole_project_is_imported_as_a_pipeline_takes_it(project: Path) -> None:
    code, out, err = run(str(project), "--namespace", "shop")
    assert code == 0
    assert "# 7 of 8 tests carried over, as 7 checks of 1 table" in err
    assert f"# not carried over: {project}/models/staging/schema.yml:6: shop.orders.id: unknown_test: " in err
    pipeline = parse_pipeline(f"name: a\nwrite: {{source: {{path: a.csv}}}}\n{out}", "a.yml")
    checks = pipeline.tables["shop.orders"].checks
    assert [check.check for check in checks] == [
        *("sql", "unique", "not_null", "sql", "match_regex", "sql", "row_count"),
    ]
    assert [check.severity for check in checks] == ["warn"] * 6 + ["fail"]
    assert checks[4].model_dump()["pattern"] == "^\\d+: 'a'$"


def test_a_file_is_read_with_the_project_that_it_lies_in(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project / "models")
    code, out, err = run("staging/schema.yml", "--namespace", "shop")
    assert code == 0
    assert "# 5 of 6 tests carried over" in err
    assert "# not carried over: staging/schema.yml:6: " in err
    assert out.count("severity: warn") == 5
    monkeypatch.chdir(project / "models/staging")
    assert run("schema.yml", "--namespace", "shop")[1] == out
    monkeypatch.chdir(project)
    assert run("models/staging/schema.yml", "--namespace", "shop")[1] == out
    (project / "nested").mkdir()
    (project / "nested/dbt_project.yml").write_text("name: other\n")
    assert run(".", "--namespace", "shop")[1].count("severity: warn") == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["PATH"], "say in which namespace the tables of the models of dbt are: --namespace shop"),
        (["PATH/docker-compose.yml", "--namespace", "a"], "is neither a dbt property file"),
        (["PATH/macros/even.sql", "--namespace", "a"], "is neither YAML nor JSON"),
        (["PATH/macros", "--namespace", "a"], "has no dbt property file, no SodaCL and no suite"),
        (["PATH/missing.yml", "--namespace", "a"], "cannot be read: No such file"),
        (["PATH", "--namespace", "a b"], "--namespace: 'a b.t' is not a table name"),
        (["PATH", "--namespace", "a", "--table", "x"], "--table: 'x' is not a table name"),
        (["PATH", "--namespace", "a", "--dialect", "snowflak"], "did you mean 'snowflake'?"),
        (["PATH", "--namespace", "a", "--var", "x"], "--var 'x': write NAME=VALUE"),
        (["PATH", "--namespace", "a", "--var", "x=["], "--var: a value is not valid YAML"),
        (["PATH/gx/suite.json"], "say which table the suite is about"),
    ],
)
def test_what_is_refused_is_one_message(project: Path, arguments: list[str], message: str) -> None:
    code, out, err = run(*(each.replace("PATH", str(project)) for each in arguments))
    assert (code, out) == (2, "")
    assert err.startswith("sluice: ") and message in err
    assert len(err.splitlines()) == 1


def test_a_file_that_is_broken_is_listed_in_a_folder_and_refused_by_itself(project: Path) -> None:
    broken = project / "models" / "broken.yml"
    broken.write_text("models: [\n")
    code, _, err = run(str(project), "--namespace", "shop")
    assert code == 0
    assert f"# not carried over: {broken}:1: the file: this is not valid YAML" in err
    code, out, err = run(str(broken), "--namespace", "shop")
    assert (code, out) == (2, "")
    assert f"sluice: {broken}:2: this is not valid YAML" in err


def test_every_file_that_cannot_be_read_is_listed(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder, outside = project / "models", tmp_path_factory.mktemp("outside") / "x.yml"
    outside.write_text(SCHEMA)
    (folder / "latin.yml").write_bytes("models: [{name: é}]".encode("latin-1"))
    (folder / "long.yml").write_text("models: []\n" + "#" * 5 * 2**20)
    (folder / "dangling.yml").symlink_to(folder / "missing.yml")
    (folder / "outside.yml").symlink_to(outside)
    (folder / "linked").symlink_to(outside.parent)
    (folder / "zero.yml").symlink_to("/dev/zero")
    (project / "macros" / "latin.sql").write_bytes("-- é".encode("latin-1"))
    os.mkfifo(folder / "pipe.yml")
    code, _, err = run(str(project), "--namespace", "shop")
    assert code == 0
    problems = dict(re.findall(rf"# not carried over: {project}/(\S+?):1: the file: it cannot be read: (.*)", err))
    assert problems == {
        "macros/latin.sql": "it is not written in UTF-8",
        "models/dangling.yml": "No such file or directory",
        "models/latin.yml": "it is not written in UTF-8",
        "models/linked": "it is a link to a folder",
        "models/long.yml": "it has more than 5,242,880 bytes",
        "models/outside.yml": "it is a link out of the folder",
        "models/pipe.yml": "it is not a regular file",
        "models/zero.yml": "it is not a regular file",
    }
    code, _, err = run(str(folder / "pipe.yml"), "--namespace", "shop")
    assert code == 2 and "it is not a regular file" in err


def test_files_are_known_by_their_keys_in_any_style_and_any_folder_of_a_project(project: Path) -> None:
    files = {
        "models/flow.yml": "{version: 2, models: [{name: flow, columns: [{name: a, tests: [unique]}]}]}",
        "models/marked.yml": "\ufeffmodels: [{name: marked, columns: [{name: a, tests: [unique]}]}]",
        "models/logs/s.yml": "models: [{name: of_logs, columns: [{name: a, tests: [unique]}]}]",
        "logs/s.yml": "models: [{name: other, columns: [{name: a, tests: [unique]}]}]",
        "models/site.yml": "{pages: [models]}",
        "models/half.yml": "{models: [",
    }
    write_files(project, files)
    code, out, err = run(str(project), "--namespace", "shop")
    assert code == 0
    assert re.findall(r"^  (shop\.\w+):", out, re.M) == ["shop.flow", "shop.marked", "shop.of_logs", "shop.orders"]
    assert f"{project}/models/half.yml:1: the file: this is not valid YAML" in err
    assert "site.yml" not in err


def test_checks_that_ignore_the_scope_are_counted(project: Path) -> None:
    _, _, err = run(str(project / "models/staging/schema.yml"), "--namespace", "shop", "--scope", "added")
    assert "# 2 checks `sql` read the whole table in spite of --scope added" in err


@pytest.mark.parametrize(
    "expression",
    ["'a'.ljust(3000000000)", "'%3000000000d' % 1", "'a' * 90000 ~ 'a'.center(3000000000)"],
)
def test_a_template_without_bounds_ends_at_the_limit_of_memory(project: Path, expression: str) -> None:
    (project / "macros/even.sql").write_text(
        f"{{% test is_even(model, column_name) %}}select {{{{ {expression} }}}}{{% endtest %}}"
    )
    code, _, err = run(str(project), "--namespace", "shop")
    assert code == 0
    assert "is_even: the project's test is_even cannot be resolved: it needs too much memory" in err
    assert "# 6 of 8 tests carried over" in err


def test_a_template_without_end_ends_the_import_in_time(project: Path) -> None:
    loops = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
    (project / "macros/even.sql").write_text(f"{{% test is_even(model, column_name) %}}{loops}{{% endtest %}}")
    files, options = read_files(project), ImportOptions(namespace="shop")
    with pytest.raises(InvalidPipeline, match=r"stopped after 1 seconds: a macro may have no end; import fewer files$"):
        run_limited(partial(import_files, lenient=True), files, options, max_seconds=1)


def test_a_test_of_a_table_without_other_tests_can_be_written(tmp_path: Path) -> None:
    """During the import, the `ref` of a query is more than a text."""
    files = {
        "dbt_project.yml": "name: p",
        "models/s.yml": "models: [{name: a, columns: [{name: id, tests: [unique]}]}]",
        "tests/n.sql": "select * from {{ ref('b') }} where x < 0",
    }
    write_files(tmp_path, files)
    code, out, _ = run(str(tmp_path), "--namespace", "lake")
    assert code == 0
    assert "  lake.b:\n    checks:\n    - sql:" in out


def write(folder: Path, texts: dict[str, str]) -> str:
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return str(folder)


def test_a_folder_may_have_queries_alone_which_lie_where_the_project_says(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        {
            "dbt_project.yml": "name: p\ntest-paths: [tests, checks/data]",
            "models/tests/model.sql": "select * from {{ ref('a') }}",
            "tests/one.sql": "select * from {{ ref('a') }} where x < 0",
            "checks/data/two.sql": "select * from {{ ref('a') }} where y < 0",
        },
    )
    code, out, err = run(folder, "--namespace", "lake")
    assert code == 0
    assert "# 2 of 2 tests carried over" in err
    assert "x < 0" in out and "y < 0" in out


def test_a_project_file_that_cannot_be_read_is_listed_beside_the_rest(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        {
            "a/dbt_project.yml": "name: [",
            "b/dbt_project.yml": "- 1",
            "b/models/s.yml": "models: [{name: b, columns: [{name: i, tests: [unique]}]}]",
        },
    )
    code, out, err = run(folder, "--namespace", "lake")
    assert code == 0, err
    assert "a/dbt_project.yml:1: the file" in err
    assert "lake.b" in out

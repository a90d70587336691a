"""The structure of the code: imports point one way, and the documents are accurate."""

import ast
import functools
import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from cli.command_reference import DOCUMENT, command_reference
from cli.lazy_commands import COMMANDS, load_command
from devstack.stack import ROOT
from sluice.contracts.lake_queries import RESULTS
from sluice.contracts.run import RunResult
from sluice.deployment.files import read_files
from sluice.pipeline.write_modes import Mode
from sluice.presentation.reference import DOCUMENTS
from sluice.settings import GROUP_OF
from tests.harness.rooms import ALLOWED, DOMAIN, JOBS, ROOMS_WITH_SHELVES, SHELVES

ROOMS = {*ALLOWED, "tests"}
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@functools.cache
def imported_modules(file: Path) -> set[str]:
    """Return the full names of a file's imports."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module or "")
    return modules


def imported(file: Path) -> set[str]:
    """Return the top-level packages that a file imports."""
    return {module.split(".")[0] for module in imported_modules(file)}


@pytest.mark.parametrize("room", ALLOWED)
def test_imports_point_one_way(room: str) -> None:
    for file in (ROOT / room).rglob("*.py"):
        others = imported(file) & ROOMS - {room}
        assert others <= ALLOWED[room], f"{file.relative_to(ROOT)} imports {others - ALLOWED[room]}"


def test_imports_inside_the_domain_point_one_way() -> None:
    assert {path.parent.name for path in (ROOT / "sluice").glob("*/__init__.py")} == {*DOMAIN}
    for number, package in enumerate(DOMAIN):
        for file in (ROOT / "sluice" / package).rglob("*.py"):
            wrong = {each.split(".")[1] for each in imported_modules(file) if each.startswith("sluice.")}
            assert not wrong & {*DOMAIN[number + 1 :]}, f"{file.relative_to(ROOT)} imports {wrong}"


def test_imports_inside_of_spark_jobs_point_one_way() -> None:
    def part_of(module: str) -> int:
        return next(number for number, part in enumerate(JOBS) if f"{module}.".startswith(f"{part}."))

    for file in (ROOT / "spark_jobs").rglob("*.py"):
        own = part_of(".".join(file.relative_to(ROOT).with_suffix("").parts))
        modules = {each for each in imported_modules(file) if each.split(".")[0] == "spark_jobs"}
        assert not [each for each in modules if part_of(each) > own], f"{file.relative_to(ROOT)} imports {modules}"


def test_rooms_have_the_same_shelves() -> None:
    for name, others in ROOMS_WITH_SHELVES.items():
        folders = {path.name for path in (ROOT / name).iterdir() if (path / "__init__.py").is_file()}
        assert folders <= SHELVES | others, f"{name} has the folders {folders - SHELVES - others}"
    architecture = (ROOT / "docs" / "architecture.md").read_text()
    assert all(f"`{shelf}`" in architecture for shelf in SHELVES)


def test_what_starts_a_run_reads_of_the_lake_only_its_input() -> None:
    for file in (ROOT / "runtime").rglob("*.py"):
        modules = re.findall(r"^(?:from|import) (lakehouse\S*)", file.read_text(), re.M)
        assert set(modules) <= {"lakehouse.source_files"}, file


def test_every_query_about_the_lake_has_an_activity_of_its_name_and_signature() -> None:
    for query, result in RESULTS.items():
        kind = query.model_fields["kind"].default
        (file,) = (ROOT / "activities").rglob(f"{kind}.py")
        module = importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
        activity_class = getattr(module, "".join(part.title() for part in kind.split("_")) + "Activity")
        hints = get_type_hints(getattr(activity_class, kind))
        assert hints == {"input": query, "return": result}


def test_only_spark_jobs_compute_with_pyspark() -> None:
    for room in ALLOWED.keys() - {"spark_jobs", "engine"}:
        for file in (ROOT / room).rglob("*.py"):
            assert "pyspark" not in imported(file), file


WALLS = [
    # importer, forbidden import, exceptions
    ("*", "pynessie", ("lakehouse/nessie/",)),
    ("*", "lakehouse.nessie", ("lakehouse/nessie/", "lakehouse/open_catalog.py")),
    ("*", "worker", ("bench/",)),
    ("*", "hosting", ("worker.py", "hosting/", "bench/")),
    ("worker.py", "cli", ()),
    ("worker.py", "devstack", ()),
    ("*", "tests", ("bench/",)),
]
"""Import rules that the table of rooms does not contain."""


@pytest.mark.parametrize(("who", "what", "but"), WALLS)
def test_walls_that_the_rooms_do_not_show(who: str, what: str, but: tuple[str, ...]) -> None:
    for room in [*ALLOWED, "devstack", "bench", "worker.py", "run_workflow.py"]:
        for file in (ROOT / room).rglob("*.py") if (ROOT / room).is_dir() else [ROOT / room]:
            name = str(file.relative_to(ROOT))
            if (who == "*" or name.startswith(who)) and not name.startswith(but):
                wrong = [each for each in imported_modules(file) if f"{each}.".startswith(f"{what}.")]
                assert not wrong, f"{name} imports {wrong}"


NAME_NESSIE = (
    "lakehouse/nessie/",
    "lakehouse/catalog.py",
    "lakehouse/open_catalog.py",
    "devstack/",
    "sluice/setting_groups.py",
    "sluice/settings.py",
)
"""The only paths that may name the catalog behind the port: its room, its selection, its settings, the local stack."""


def test_nessie_is_named_in_its_room_alone() -> None:
    for room in ALLOWED:
        for file in (ROOT / room).rglob("*.py"):
            name = str(file.relative_to(ROOT))
            text = file.read_text().replace("NESSIE_PUBLISHER_TOKEN_FILE", "")  # no job gets this variable
            assert name.startswith(NAME_NESSIE) or "nessie" not in text.lower(), name


def test_modules_fit_on_a_few_screens() -> None:
    for room, most in {**dict.fromkeys(ALLOWED, 330), "tests": 400}.items():
        for file in (ROOT / room).rglob("*.py"):
            lines = len(file.read_text().splitlines())
            assert lines <= most, f"{file.relative_to(ROOT)} has {lines} lines: cut it where its subject changes"


def test_what_tests_share_is_in_the_harness() -> None:
    for file in (ROOT / "tests").rglob("*.py"):
        named = re.findall(r"\btests(?:\.\w+)+\.(?:test_\w+|conftest)\b", file.read_text())
        assert not named, f"{file.relative_to(ROOT)} names {named}: move what it needs to tests/harness"


def compared_modes(file: Path) -> list[str]:
    """Return the names of write modes that a module compares with a `mode`, or lists together."""
    names = set(get_args(Mode))
    modes: list[str] = []
    for node in ast.walk(ast.parse(file.read_text())):
        if not isinstance(node, ast.Compare | ast.Tuple | ast.List | ast.Set):
            continue
        constants = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
        named = names & {each for each in constants if isinstance(each, str)}
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            is_mode = any(getattr(side, "attr", getattr(side, "id", "")) == "mode" for side in sides)
            modes += named if is_mode else ()
        elif len(named) > 1:
            modes += named
    return modes


def test_what_a_write_mode_means_stands_in_one_table() -> None:
    table = ROOT / "sluice" / "pipeline" / "write_modes.py"
    for room in ALLOWED:
        for file in {*(ROOT / room).rglob("*.py")} - {table, ROOT / "spark_jobs" / "warm_up.py"}:
            assert not compared_modes(file), f"{file.relative_to(ROOT)}: ask {table.name} about {compared_modes(file)}"


EXAMPLES = [(doc, text) for doc in DOCS for text in re.findall(r"```yaml\n(.*?)```", doc.read_text(), re.S)]


@pytest.mark.parametrize(("doc", "text"), EXAMPLES, ids=[f"{doc.stem}-{i}" for i, (doc, _) in enumerate(EXAMPLES)])
def test_the_examples_of_the_documents_are_valid_pipelines(doc: Path, text: str) -> None:
    assert read_files({doc.name: text})[0].pipeline.tables


def test_what_the_documents_list_is_all_there_is() -> None:
    report = (ROOT / "docs" / "report-reference.md").read_text()
    for name, documented in DOCUMENTS.items():
        text = (ROOT / name).read_text()
        assert documented(text) == text, "make docs"
    for field in RunResult.model_fields:
        assert f"`{field}`" in report
    assert (ROOT / DOCUMENT).read_text() == command_reference(), "make docs"
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def _imported(code: str, modules: tuple[str, ...]) -> list[str]:
    """Return those of the modules that a program imports."""
    shown = f"import sys; {code}; print([name for name in {modules} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", shown], cwd=ROOT, capture_output=True, text=True, check=True)
    imported: list[str] = ast.literal_eval(done.stdout.splitlines()[-1])
    return imported


def test_a_run_does_not_wait_for_what_other_commands_need() -> None:
    """Each of these imports costs a command between a tenth and half a second."""
    heavy = ("pyiceberg", "pynessie", "pyarrow", "duckdb", "aiohttp", "pyspark")
    assert _imported("import cli.run.start_pipeline", heavy) == []


def test_the_help_of_run_needs_neither_the_client_nor_the_model_of_pipelines() -> None:
    heavy = ("temporalio", "pydantic", "sqlglot", "sluice.pipeline.model", "sluice.settings")
    assert _imported("import cli.run.start", heavy) == []


def test_the_help_of_a_command_does_not_import_pydantic() -> None:
    """Typer 0.29 does, for each command that has an option (ADR 2)."""
    code = "from cli.app import app; app(['run', '--help'], standalone_mode=False)"
    assert _imported(code, ("pydantic",)) == []


def test_a_command_imports_only_what_it_needs() -> None:
    """These imports cost a command more processor time than its own work."""
    of_runs = ("sluice.pipeline.model", "sluice.contracts.run_request", "sluice.contracts.lake_queries")
    heavy = ("workflows.write_audit_publish", "workflows.activity_calls", "sluice.checks.registry", "sqlglot", *of_runs)
    assert _imported("import cli.context", heavy) == []
    assert _imported("import cli.run.list_runs", heavy) == []
    assert _imported("import cli.run.status", heavy) == []
    assert _imported("import cli.pipeline.check_pipeline", ("temporalio", "rich", "pyarrow")) == []
    of_settings = ("sluice.settings", "sluice.contracts.run")
    assert _imported("import cli.app, cli.pipeline.checks; cli.app._export_store_access()", of_settings) == []
    assert _imported("import cli.pipeline.checks", ("temporalio", "pydantic", "sluice.checks.base")) == []


def test_the_list_of_commands_imports_no_command() -> None:
    listed = "import cli.app; cli.app.app(['--help'], standalone_mode=False)"
    heavy = ("temporalio", "pydantic", "rich", "sqlglot", "ruamel.yaml", "cli.context", "sluice.settings")
    assert _imported(listed, heavy) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_shows_the_first_paragraph_of_their_help(name: str) -> None:
    command = load_command(name)
    assert " ".join(command.help.split("\n\n")[0].split()) == COMMANDS[name].help
    assert command.name == name


def test_every_setting_is_documented_and_those_of_a_first_user_come_first() -> None:
    first, advanced = (ROOT / ".env.example").read_text().split("# === Advanced ===")
    variables = [re.findall(r"^(?:# )?([A-Z][A-Z0-9_]*)=", part, re.M) for part in (first, advanced)]
    assert len(variables[0]) <= 12
    documented = [*variables[0], *variables[1]]
    assert len(documented) == len(set(documented))
    assert {field.upper() for field in GROUP_OF} <= set(documented)


ALL_SETTINGS = {
    "worker.py": "starts the worker",
    "cli/context.py": "runs commands, and gives each the groups that it needs",
    "devstack/split_users/set_up.py": "sets up workers of two users",
    "hosting/": "builds the activities",
    "lakehouse/open_catalog.py": "opens the catalog",
    "lakehouse/iceberg_catalog/settings.py": "opens an Iceberg catalog",
    "activities/installation/examine_installation.py": "examines the settings for `doctor`",
    "runtime/installation/examination.py": "examines the settings for `doctor`",
    "web/examination.py": "examines the settings for `doctor`",
    "runtime/installation/identity.py": "completes the settings by the id of the installation",
    "runtime/background.py": "starts the background tasks of a worker",
    "runtime/arrivals/notifications/receivers.py": "starts the receivers of notifications",
    "runtime/schedules/deploy.py": "deploys schedules and landing zones",
    "runtime/run/start_run.py": "starts a run: queue, time-outs, signature and lineage",
    "runtime/pipeline/rehearsals.py": "starts runs",
    "activities/run/prepare_run.py": "starts runs",
    "web/server.py": "serves the page",
    "web/app.py": "makes the page",
    "web/page.py": "starts runs for a person on the page",
}
"""The only paths that get all settings, each with its work. Other parts get a group."""


def test_few_parts_get_all_settings() -> None:
    annotated = re.compile(r"(?<=: )Settings\b")
    holders = set()
    for room in [*ALLOWED, "devstack", "worker.py", "run_workflow.py"]:
        for file in (ROOT / room).rglob("*.py") if (ROOT / room).is_dir() else [ROOT / room]:
            if annotated.search(file.read_text()):
                holders.add(str(file.relative_to(ROOT)))
    assert not [each for each in holders if not each.startswith(tuple(ALL_SETTINGS))]
    assert not [path for path in ALL_SETTINGS if not any(each.startswith(path) for each in holders)]


def test_links_between_documents_lead_somewhere() -> None:
    for doc in [*DOCS, ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", doc.read_text()):
            assert (doc.parent / target).exists(), f"{doc.name} links to {target}"

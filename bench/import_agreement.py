"""Compare imported checks with the outcomes that dbt_utils and dbt_expectations expect of their own tests.

    make up && python -m bench.import_agreement --out docs/measurements/import_agreement.json

Both projects state tests that all pass on their seeds; thresholds turn tests that should fail into passing ones. A
Spark program loads the seeds, and the models that need none of their macros. The run audits the imported checks and
publishes nothing. Fetches files that are not under `--mirror` from GitHub. Needs the local stack.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path, PurePosixPath
from typing import Any

from ruamel.yaml import YAML

from bench.imports import MIRROR, Address, Repositories
from importing.dbt.jinja_values import DbtValues, Package
from importing.dbt.macros import DbtMacros
from importing.imported import NotCarriedOver, SourceText
from importing.project import ImportOptions, import_files, sort_files

NAMESPACE = "import_agreement"
_PROJECTS = {
    "dbt-utils": Address("dbt", "dbt-labs/dbt-utils", "700764ce230b2fb775b5338b6bc77a72233ea34c", "integration_tests"),
    "dbt-expectations": Address(
        "dbt", "metaplane/dbt-expectations", "77d385655ce3318685cf6930b46d077f61de5f55", "integration_tests"
    ),
}
_JOB = '''"""Load the seeds and models of a dbt project into tables."""

import json
import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
for each in json.load(open(sys.argv[1])):
    namespace = each["table"].rpartition(".")[0]
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {namespace}")
    if "query" in each:
        rows = spark.sql(each["query"])
    else:
        rows = spark.read.csv(each["path"], header=True, inferSchema=True, enforceSchema=False)
        for name, kind in each["types"].items():
            rows = rows.withColumn(name, rows[name].cast(kind))
    rows.writeTo(each["table"]).createOrReplace()
'''


def _dates(part: str = "day", count: int = 366) -> str:
    """Return a query for the dates or hours up to now, like those of dbt_date."""
    unit, now = part.upper(), f"date_trunc('{part.upper()}', current_timestamp())"
    return f"SELECT explode(sequence({now} - INTERVAL '{count}' {unit}, {now}, INTERVAL '1' {unit})) AS date_{part}"


def _series(upper_bound: int) -> str:
    return f"SELECT explode(sequence(1, {upper_bound})) AS generated_number"


class AgreementValues(DbtValues):
    """Values for dbt's files, with the macros of packages that generate the data of dbt_expectations."""

    def __init__(self) -> None:
        super().__init__(NAMESPACE, {})
        names = self.environment.globals
        more = {
            "get_base_dates": lambda n_dateparts=240, datepart="day", **_: _dates(datepart, n_dateparts),
            "generate_series": _series,
            "rand": lambda: "rand()",
            "log_natural": lambda text: f"ln({text})",
        }
        for package in ("dbt_date", "dbt_expectations"):
            names[package] = Package(package, {**vars(names[package]), **more})
        names["type_string"] = lambda: "string"


def load_plan(texts: list[SourceText], values: DbtValues, folder: Path) -> list[dict[str, Any]]:
    """Return how to create each table of a project: seeds from files in a folder, models by their query."""
    macros = DbtMacros(values, [])
    types = _seed_types(texts)
    plan: list[dict[str, Any]] = []
    models: dict[str, tuple[str, list[str]]] = {}
    for text in texts:
        name = PurePosixPath(text.path).stem
        if text.path.endswith(".csv") and "/data/" in text.path:
            path = folder / f"{name}.csv"
            path.write_text(text.text)
            plan.append({"table": f"{NAMESPACE}.{name}", "path": str(path), "types": types.get(name, {})})
        elif text.path.endswith(".sql") and "/models/" in text.path:
            reads: list[str] = []
            try:
                models[f"{NAMESPACE}.{name}"] = (macros.singular(text.text, reads)[0], reads)
            except NotCarriedOver as error:
                print(f"  no data for {name}: {str(error)[:100]}")
    made = {each["table"] for each in plan}
    while ready := [table for table, (_, reads) in models.items() if table not in made and made.issuperset(reads)]:
        plan += [{"table": table, "query": models[table][0]} for table in ready]
        made.update(ready)
    return plan


def _seed_types(texts: list[SourceText]) -> dict[str, dict[str, str]]:
    project = next(text for text in texts if text.path.endswith("dbt_project.yml"))
    types: dict[str, dict[str, str]] = {}

    def visit(node: Any, name: str) -> None:
        for key, value in node.items() if isinstance(node, dict) else ():
            if key == "+column_types":
                types[name] = {column: str(kind) for column, kind in value.items()}
            else:
                visit(value, str(key))

    visit(YAML(typ="safe").load(project.text).get("seeds"), "")
    return types


def compare(name: str, repositories: Repositories) -> dict[str, Any]:
    """Import a project, audit its checks on its data, and return the number of checks that agree."""
    address = _PROJECTS[name]
    paths = [path for path in repositories.files(address.repository, address.commit) if path.startswith(address.path)]
    wanted = [path for path in paths if path.endswith((".yml", ".sql", ".csv")) and "/ci/" not in path]
    texts = [SourceText(path, repositories.text(address, path)) for path in wanted]
    values = AgreementValues()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        plan = load_plan(texts, values, folder)
        files = sort_files([text for text in texts if not text.path.endswith(".csv")])
        imported = import_files(files, ImportOptions(namespace=NAMESPACE))
        tables = [each["table"] for each in plan]
        checks = {table: imported.checks.get(table, []) for table in tables}
        (folder / "plan.json").write_text(json.dumps(plan))
        (folder / "job.py").write_text(_JOB)
        pipeline = {
            "name": f"agreement-{name}",
            "write": {"job": str(folder / "job.py"), "args": [str(folder / "plan.json")]},
            "tables": {table: {"checks": each} for table, each in checks.items()},
        }
        with (folder / "pipeline.yml").open("w") as file:
            YAML().dump(pipeline, file)
        command = [sys.executable, "run_workflow.py", "run", str(folder / "pipeline.yml"), "--no-publish", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        result = json.loads(done.stdout)
    except ValueError:
        raise SystemExit(f"the run gave no result:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}") from None
    verdicts = result.get("checks")
    if not verdicts:
        raise SystemExit(f"the run audited nothing: {done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    differing = [each for each in verdicts if each["verdict"] in ("fail", "error")]
    return {
        "tests": imported.carried_over + imported.active_left,
        "carried_over": imported.carried_over,
        "checks_on_data": len(verdicts),
        "agree": len(verdicts) - len(differing),
        "answered_by": dict(Counter(str(each["answered_by"]) for each in verdicts)),
        "differ": [
            {key: each[key] for key in ("table", "check", "columns", "verdict", "expected", "observed", "message")}
            for each in differing
        ],
    }


def main() -> int:
    """Compare both projects, print the agreement, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mirror", type=Path, default=MIRROR)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    repositories = Repositories(given.mirror)
    results = {}
    for name in _PROJECTS:
        results[name] = compared = compare(name, repositories)
        print(f"{name:18} {compared['agree']} of {compared['checks_on_data']} checks agree, {compared['answered_by']}")
        for each in compared["differ"]:
            print(f"  {each['table']} {each['check']}: {each['verdict']} {each['message'] or each['observed']}")
    if given.out:
        given.out.write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

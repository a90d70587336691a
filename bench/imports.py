"""Measure the share of public data tests that can be imported: read files by their addresses, and count tests.

    python -m bench.imports docs/measurements/import_corpus.tsv --out docs/measurements/imports.json

Each line of the list is a group (`sodacl`, `gx`, or one of dbt's files), a repository of GitHub, a commit and a path.
Files that are not under `--mirror` are fetched from GitHub. A file of dbt is imported twice: alone, and with the macros
of its project, as `import FOLDER` does. The imported checks are written as a pipeline file, which is then parsed.
"""

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from cli.pipeline.import_checks import checks_as_yaml
from importing.imported import ImportedChecks, SourceText
from importing.project import Files, ImportOptions, import_files
from sluice.errors import InvalidPipeline
from sluice.pipeline.file import parse_pipeline

_QUOTED = re.compile(r"\{\{.*?\}\}|'[^']*'|\"[^\"]*\"|`[^`]*`|\(\(.*$")
"""Quotations from files in reasons. They are removed, so that reasons of one kind are counted together."""
MIRROR = Path(".sluice/import_corpus")
_KINDS = {"sodacl": "soda", "gx": "suites"}
"""Kinds of file for the groups that are not of dbt."""


@dataclass(frozen=True)
class Address:
    """Address of a file of the corpus."""

    group: str
    repository: str
    commit: str
    path: str


def read_addresses(path: Path) -> list[Address]:
    """Return the addresses of a list. Lines that begin with # are comments."""
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return [Address(*line.split("\t")[:4]) for line in lines]


class Repositories:
    """Public repositories, as bare git directories under a folder."""

    def __init__(self, mirror: Path) -> None:
        self._mirror = mirror

    @cache  # noqa: B019 - one object for the run of the program
    def directory(self, repository: str, commit: str) -> Path:
        """Return the git directory that has a commit. Fetch it if it is missing."""
        folder = self._mirror / repository.replace("/", "+")
        for candidate in (folder / "repo", folder):
            if (candidate / "HEAD").exists():
                return candidate
        folder.mkdir(parents=True)
        subprocess.run(["git", "init", "-q", "--bare", folder], check=True)
        url = f"https://github.com/{repository}"
        subprocess.run(["git", "--git-dir", folder, "fetch", "-q", "--depth=1", url, commit], check=True)
        return folder

    def text(self, address: Address, path: str | None = None) -> str:
        """Return the text of a file of the repository of an address."""
        return self._git(address, "show", f"{address.commit}:{path or address.path}")

    @cache  # noqa: B019
    def files(self, repository: str, commit: str) -> list[str]:
        """Return the paths of all files of a commit."""
        return self._git(Address("", repository, commit, ""), "ls-tree", "-r", "--name-only", commit).splitlines()

    def project_of(self, address: Address) -> tuple[list[SourceText], list[SourceText]]:
        """Return the macros of the dbt project that contains a file, and its `dbt_project.yml`."""
        paths = self.files(address.repository, address.commit)
        roots = [str(PurePosixPath(path).parent) for path in paths if PurePosixPath(path).name == "dbt_project.yml"]
        roots = [root for root in roots if root == "." or address.path.startswith(f"{root}/")]
        if not roots:
            return [], []
        root = max(roots, key=len)
        prefix = "" if root == "." else f"{root}/"
        own = [path for path in paths if path.startswith(prefix) and path.endswith(".sql")]
        macros = [path for path in own if "/macros/" in f"/{path}" or "/generic/" in path or "/tests/" in f"/{path}"]
        project = SourceText(f"{prefix}dbt_project.yml", self.text(address, f"{prefix}dbt_project.yml"))
        return [SourceText(path, self.text(address, path)) for path in macros], [project]

    def _git(self, address: Address, *arguments: str) -> str:
        directory = self.directory(address.repository, address.commit)
        done = subprocess.run(["git", "--git-dir", directory, *arguments], capture_output=True, check=True)
        return done.stdout.decode("utf-8", errors="replace")


def import_address(repositories: Repositories, address: Address, *, with_project: bool) -> ImportedChecks | str:
    """Import one file. Return the reason if it cannot be read at all."""
    file = SourceText(address.path, repositories.text(address))
    macros, project = repositories.project_of(address) if with_project else ([], [])
    kind: dict[str, Any] = {_KINDS.get(address.group, "dbt"): [file]}
    files = Files(**kind, macros=macros, projects=project)
    options = ImportOptions(namespace="lake", table="lake.suite" if address.group == "gx" else None)
    try:
        imported = import_files(files, options, lenient=False)
    except InvalidPipeline as error:
        return str(error)
    require_writable(imported)
    return imported


def require_writable(imported: ImportedChecks) -> None:
    """Check that the checks of each table can be written as a pipeline file, and parsed again.

    Raises:
        InvalidPipeline: they cannot be parsed.
        Exception: they cannot be written.
    """
    for table, checks in imported.checks.items():
        written = checks_as_yaml({table: checks})
        parse_pipeline(f"name: imported\nwrite: {{source: {{path: rows.csv}}}}\n{written}", "imported.yml")


def measure(repositories: Repositories, addresses: list[Address], *, with_project: bool) -> dict[str, object]:
    """Return the number of tests that were carried over, and the most frequent reasons of the others."""
    carried = left = inactive = 0
    reasons: Counter[str] = Counter()
    unreadable = {}
    for address in addresses:
        result = import_address(repositories, address, with_project=with_project)
        if isinstance(result, str):
            unreadable[f"{address.repository}:{address.path}"] = result
            continue
        carried += result.carried_over
        left += result.active_left
        inactive += len(result.left) - result.active_left
        reasons.update(_QUOTED.sub("…", each.reason) for each in result.left if not each.inactive)
    return {
        "files": len(addresses),
        "repositories": len({address.repository for address in addresses}),
        "tests": carried + left,
        "carried_over": carried,
        "share": round(carried / max(carried + left, 1), 4),
        "inactive": inactive,
        "unreadable": unreadable,
        "reasons": dict(reasons.most_common(25)),
    }


def main() -> int:
    """Measure each group, print the shares, and write them with the reasons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("addresses", type=Path)
    parser.add_argument("--mirror", type=Path, default=MIRROR)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    repositories, addresses = Repositories(given.mirror), read_addresses(given.addresses)
    results = {}
    for name in dict.fromkeys(each.group for each in addresses):
        members = [each for each in addresses if each.group == name]
        for with_project in (False, True) if name not in _KINDS else (False,):
            title = f"{name}, with its project" if with_project else f"{name}, alone" if name not in _KINDS else name
            results[title] = measured = measure(repositories, members, with_project=with_project)
            print(
                f"{title:32} {measured['files']:>4} files {measured['tests']:>6} tests "
                f"{measured['carried_over']:>6} carried over  {measured['share']:.1%}"
            )
    if given.out:
        given.out.write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A local stack whose catalog is Iceberg's REST reference server, and an independent reader of its lake."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from devstack.stack import Stack
from tests.harness.iceberg_checker import IcebergChecker
from tests.harness.iceberg_rest import IcebergRestServer
from tests.harness.lake import LakeReader
from tests.harness.system import link_tools


class RestStack:
    """Temporal, and a REST server that tests may end and start again; no worker."""

    def __init__(self, folder: Path, **more: str) -> None:
        home = folder / "home"
        home.mkdir()
        link_tools(home)
        (folder / "catalog").mkdir()
        self.server = IcebergRestServer(folder / "catalog")
        settings = {
            "SLUICE_HOME": str(home),
            "CATALOG": "rest",
            "ICEBERG_URI": self.server.uri,
            "WAREHOUSE": str(self.server.warehouse),
            **more,
        }
        self.stack = Stack(home, {**os.environ, **settings})
        self.variables = {**settings, **self._up()}
        """The variables by which programs find the running stack."""

    def _up(self) -> dict[str, str]:
        try:
            return self.stack.up(with_worker=False)
        except BaseException:
            self.server.stop()
            raise

    def down(self) -> None:
        """Stop both servers."""
        self.stack.down()
        self.server.stop()


class IcebergLakeReader(LakeReader):
    """A reader of a REST catalog that uses none of Sluice's code."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._checker = IcebergChecker(variables["ICEBERG_URI"])

    def rows(self, table: str, ref: str = "main") -> list[dict[str, Any]]:
        """Return all rows of a table on main, or none if the table does not exist."""
        assert ref == "main", "a branch is in the log alone"
        version = self._checker.table(table)
        rows: list[dict[str, Any]] = version.table.scan().to_arrow().to_pylist() if version else []
        return rows

    def head(self, ref: str = "main") -> str:
        """Return the head of main."""
        assert ref == "main"
        return self._checker.head()

    def branches(self, containing: str = "") -> list[str]:
        """Return the names of all branches that contain a text, except Sluice's own."""
        return [each for each in self._checker.branches() if containing in each]

    def commit(self, commit_hash: str) -> dict[str, Any]:
        """Return the properties and parents of a commit on main."""
        return next(each for each in self._checker.commits("") if each["hash"] == commit_hash)

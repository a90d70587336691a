"""Fixtures of the contract of catalogs: each test runs on every implementation."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakehouse.catalog import BranchCatalog
from tests.harness.contract_lake import IMPLEMENTATIONS, SLOW, WRITERS, Lake, require
from tests.harness.table_versions import PathVersions, SnapshotVersions


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in IMPLEMENTATIONS]
)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    versions = SnapshotVersions(tmp_path / "versions") if request.param.startswith("iceberg") else PathVersions()
    lake = Lake(IMPLEMENTATIONS[request.param](request), versions)
    yield lake
    lake.close()


@pytest.fixture
def writer(lake: Lake, request: pytest.FixtureRequest) -> BranchCatalog:
    """The catalog of `lake`, opened with the identity of a writer."""
    require(lake, "main_permissions")
    implementation = request.node.callspec.params["lake"]
    assert implementation in WRITERS, f"{implementation} declares main_permissions: add it to WRITERS"
    return WRITERS[implementation](request)

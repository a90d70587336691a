"""The files of a joint publish: main remembers them as if each partition had been published alone."""

import pytest

from sluice.pipeline.scope import LoadScope
from tests.harness.joint_backfill import JointBackfill
from tests.harness.loading_run import Folder, names
from tests.harness.memory_catalog import MemoryCatalog

MERGE = {"mode": "merge", "keys": ["id"]}


@pytest.mark.parametrize("together", [False, True], ids=["each", "together"])
async def test_content_that_comes_back_is_loaded_although_its_path_was_left_out_as_a_copy(
    folder: Folder, catalog: MemoryCatalog, together: bool
) -> None:
    """In an earlier version, a joint publish forgot that `b.csv` had other content in between, so main kept it."""
    options = {"order_matters": True, "replaces": False}
    alone = {**options, "scope": LoadScope(path="2018-01")}
    folder.file("2018-01/b.csv", "10")
    await folder.run("2018-01/*.csv", **alone).load()
    for name in ("a", "b"):
        folder.file(f"2018-01/{name}.csv", "20")
    if together:
        backfill = JointBackfill(folder, catalog, "one", MERGE)
        assert names(folder.lake, await backfill.load("2018-01", **options)) == ["a.csv"]
        await backfill.publish()
    else:
        assert names(folder.lake, await folder.run("2018-01/*.csv", **alone).load()) == ["a.csv"]
    folder.file("2018-01/b.csv", "10")
    assert names(folder.lake, await folder.run("2018-01/*.csv", **alone).load()) == ["b.csv"]

"""Measure publications as the commit log of an Iceberg catalog grows, without Spark or Temporal.

    python -m bench.commit_log [--publications 600]

Each publication creates a branch, commits to it, publishes it with 4 kB of properties, and deletes the branch, in a
JDBC catalog on SQLite in a new folder. Prints the seconds of early and late publications, and the size of the log.
"""

import argparse
import statistics
import tempfile
import time
import uuid
from pathlib import Path

from lakehouse.iceberg_catalog.catalog import IcebergCatalog
from lakehouse.iceberg_catalog.connect import open_iceberg
from sluice.contracts.references import BranchRef

_SAMPLE = 50
_PROPERTIES = {"certificate": "c" * 4_000}


def open_catalog(folder: Path) -> IcebergCatalog:
    """Open the catalog in a folder, as a new process does."""
    return open_iceberg("lake", "sql", f"sqlite:///{folder}/catalog.db", folder.as_uri(), {})


def publish(catalog: IcebergCatalog) -> None:
    """Publish one branch."""
    base = catalog.head("main")
    branch = BranchRef(name=f"wap/bench/{uuid.uuid4().hex[:8]}/a1", base=base, catalog_id=catalog.identity())
    catalog.create_branch(branch.name, base)
    head = catalog.commit_tables(branch.name, base, "write", (), {"rows": "1"})
    published = catalog.publish(branch, head, "bench", "publish", _PROPERTIES)
    assert published.merged
    catalog.delete_branch(branch.name)


def size(files: list[Path]) -> str:
    """Return the total size of files, in kB."""
    return f"{sum(file.stat().st_size for file in files) / 1000:,.0f} kB"


def main() -> None:
    """Measure and print the results."""
    parser = argparse.ArgumentParser(description="Measure publications as the commit log grows.")
    parser.add_argument("--publications", type=int, default=600)
    number = parser.parse_args().publications
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        catalog = open_catalog(folder)
        catalog.initialize_main()
        seconds = []
        for _ in range(number):
            start = time.perf_counter()
            publish(catalog)
            seconds.append(time.perf_counter() - start)
        early, late = statistics.median(seconds[:_SAMPLE]), statistics.median(seconds[-_SAMPLE:])
        start = time.perf_counter()
        fresh = open_catalog(folder)
        fresh.list_tables("main", fresh.head("main"))
        opened = time.perf_counter() - start
        start = time.perf_counter()
        assert fresh.find_published({"certificate": "none"}) is None
        searched = time.perf_counter() - start
        log = folder / "sluice" / "commits"
        newest = max((log / "metadata").glob("*.metadata.json"), key=lambda file: file.name)
        pages = [*(log / "commits").glob("*.json")]
        print(f"publications 1 to {_SAMPLE}: {early:.3f} s each (median)")
        print(f"the last {_SAMPLE} of {number}: {late:.3f} s each, {late / early:.2f} times")
        print(f"a new process reads main in {opened:.3f} s, and searches its whole history in {searched:.3f} s")
        print(f"the log's metadata: {size([newest])}; {len(pages)} pages: {size(pages)}")


if __name__ == "__main__":
    main()

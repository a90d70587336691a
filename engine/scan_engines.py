"""The scan engines of a worker's own process, in their order. Spark answers what they refuse."""

from engine.duckdb_scan import DuckDBScan
from engine.scan import SamplingEngine
from sluice.settings import Settings


def in_process_engines(settings: Settings) -> list[SamplingEngine]:
    """Return the engines that this worker scans with before it starts Spark."""
    if settings.sluice_scan_engine == "spark":
        return []
    return [DuckDBScan(settings)]

"""The scan engines of a worker's own process, in their order. Spark answers what they refuse."""

from collections.abc import Mapping

from engine.duckdb_scan import DuckDBScan
from engine.scan import SamplingEngine
from sluice.settings import Settings


def in_process_engines(settings: Settings, io: Mapping[str, str] | None = None) -> list[SamplingEngine]:
    """Return the engines that this worker scans with before it starts Spark; they read the lake by `io`."""
    if settings.sluice_scan_engine == "spark":
        return []
    return [DuckDBScan(settings, io or {})]

"""The scan engines in a worker's own process, in order of preference. Spark answers the checks that they refuse."""

from collections.abc import Mapping

from engine.duckdb_scan import DuckDBScan
from engine.scan import SamplingEngine
from sluice.setting_groups import ScanSettings


def in_process_engines(settings: ScanSettings, io: Mapping[str, str] | None = None) -> list[SamplingEngine]:
    """Return the engines that this worker tries before it starts Spark.

    Args:
        io: Iceberg's properties for reading the lake.
    """
    duckdb = duckdb_scan(settings, io)
    return [duckdb] if duckdb else []


def duckdb_scan(settings: ScanSettings, io: Mapping[str, str] | None = None) -> DuckDBScan | None:
    """Return DuckDB's engine, or None if Spark alone may read rows."""
    return None if settings.sluice_scan_engine == "spark" else DuckDBScan(settings, io or {})

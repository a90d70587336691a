"""The permitted imports between rooms, and the names of the folders in rooms."""

ALLOWED = {
    "sluice": set[str](),
    "lakehouse": {"sluice"},
    "engine": {"sluice"},
    "spark_jobs": {"sluice"},
    "workflows": {"sluice"},
    "activities": {"runtime", "engine", "lakehouse", "sluice"},
    "generation": {"sluice"},
    "importing": {"sluice"},
    "runtime": {"workflows", "lakehouse", "generation", "sluice"},
    "hosting": {"activities", "runtime", "engine", "lakehouse", "sluice"},
    "web": {"runtime", "workflows", "sluice"},
    "cli": {"web", "runtime", "workflows", "generation", "importing", "sluice"},
    "devstack": {"web", "runtime", "workflows", "engine", "lakehouse", "sluice"},
}

SHELVES = {
    *("run", "audit", "approval", "publishing", "quarantine"),
    *("arrivals", "schedules", "backfills"),
    *("pipeline", "registration", "lineage", "lake", "notifications", "installation"),
}
"""Names of the folders in rooms with several subjects: `ls -d */arrivals` lists a whole feature."""
ROOMS_WITH_SHELVES = {
    **dict.fromkeys(("activities", "cli", "runtime", "web", "workflows"), frozenset[str]()),
    "spark_jobs": frozenset({"values", "source_files"}),
    "lakehouse": frozenset({"input", "iceberg", "iceberg_catalog", "nessie", "source_files", "targets"}),
    "tests/unit": frozenset(
        {"engine", "generation", "importing", "input", "presentation", "project", "source_files", "web"}
    ),
}
"""The rooms with these folders, each with the folders that it has besides. The domain `sluice/` has others, too."""

DOMAIN = (
    *("metadata", "sql", "checks", "pipeline", "approval", "contracts", "lineage", "audit", "publishing", "diff"),
    *("backfills", "presentation", "notifications", "registration", "input", "arrivals", "deployment"),
)
"""The packages of the domain `sluice/`. Each imports only packages listed before it."""
JOBS = ("spark_jobs.job", "spark_jobs.values", "spark_jobs.source_files", "spark_jobs")
"""The parts of `spark_jobs/`: what all programs use, then the programs. Each imports only parts listed before it."""

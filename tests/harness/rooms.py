"""Which room may import which, and the shelves of the rooms."""

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
    "cli": {"runtime", "workflows", "generation", "importing", "sluice"},
    "devstack": {"runtime", "workflows", "engine", "lakehouse", "sluice"},
}

SHELVES = {
    *("run", "audit", "approval", "publishing", "quarantine"),
    *("arrivals", "schedules", "backfills"),
    *("pipeline", "registration", "lineage", "lake", "notifications", "installation"),
}
"""Names of the folders in rooms that serve several subjects: `ls -d */arrivals` shows a whole feature."""
ROOMS_WITH_SHELVES = ("activities", "cli", "runtime", "workflows")
"""These rooms have no other folders. The domain `sluice/` has the same shelves, and folders of its own."""

DOMAIN = (
    *("metadata", "sql", "checks", "pipeline", "approval", "contracts", "lineage", "audit", "publishing"),
    *("backfills", "presentation", "registration", "input", "arrivals", "deployment"),
)
"""The packages of the domain `sluice/`: each imports only packages that stand before it."""

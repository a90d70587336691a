"""Which room may import which."""

ALLOWED = {
    "sluice": set[str](),
    "lakehouse": {"sluice"},
    "engine": {"sluice"},
    "spark_jobs": {"sluice"},
    "workflows": {"sluice"},
    "activities": {"runtime", "engine", "lakehouse", "sluice"},
    "runtime": {"workflows", "lakehouse", "sluice"},
    "hosting": {"activities", "runtime", "engine", "lakehouse", "sluice"},
    "cli": {"runtime", "workflows", "sluice"},
    "devstack": {"runtime", "workflows", "engine", "lakehouse", "sluice"},
}

"""The domain of Sluice: pipelines, checks, verdicts, runs.

The only I/O here is reading settings, secrets and pipeline files.
"""

VERSION = "0.1.0"
"""The version of Sluice, as `pyproject.toml` states it."""

"""The domain of Sluice: pipelines, checks, verdicts, runs.

The only I/O here is reading settings, secrets and pipeline files.
"""

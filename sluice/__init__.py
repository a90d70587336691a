"""The domain of Sluice: pipelines, checks, verdicts, runs. Nothing here does I/O."""

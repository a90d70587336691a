"""Spark jobs as supervised processes: how they are configured, started, watched and ended.

`runner.py` shows how an engine is chosen and where one is added; `process/` ends every process of a job with its
worker; `spark/` has the engines.
"""

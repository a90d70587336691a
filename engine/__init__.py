"""Configure, start, watch and end Spark jobs as supervised processes.

`runner.py` chooses an engine, and is the place to add one. `process/` ends every process of a job when its worker ends.
`spark/` contains the engines.
"""

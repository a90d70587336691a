"""The audit: decide every check of a run's tables from metadata, or plan the scan that answers it. No I/O here.

Modules:

- `planner.py`: the checks that metadata decides for one table, and those that need a scan.
- `carry_over.py`: the verdicts that survive a rebase.
- `files.py`: the data files that a check must read.
- `scan_groups.py`: the checks, queries and files that one scan answers together.
- `engine_choice.py`: the engine that answers each check.
- `query_builder.py`: the SQL of a scan. `answers.py`: conversion of a scan's answers to verdicts, which
  `sluice/checks/results.py` makes.
- `sluice/publishing/bad_rows.py`: the conditions of row quarantine, and the rows that it moves.

`lakehouse/audit/audited_tables.py` loads the statistics, `engine/scan.py` is the port of the engines that read rows,
and the activities `audit_branch`, `scan_files`, `scan_branch` and `quarantine_rows` connect these.
"""

"""The audit: decide every check of a run's tables from metadata, or plan the scan that answers it. No I/O here.

Where to look:

- `planner.py`: what metadata proves for one table, and which checks need a scan.
- `carry_over.py`: which verdicts survive a rebase.
- `files.py`: which data files a check must read.
- `scan_groups.py`: the checks, queries and files that one scan answers together.
- `engine_choice.py`: which engine answers which check.
- `query_builder.py`: the SQL of a scan. `answers.py`: from the answers of a scan to verdicts (`verdicts.py`).
- `bad_rows.py`: when row quarantine is possible, and what it moves.

`lakehouse/audited_tables.py` loads the statistics, `engine/scan.py` is the port of the engines that read rows, and
the activities `audit_branch`, `scan_files`, `scan_branch` and `quarantine_rows` connect these.
"""

"""The search attributes by which runs are found in the Temporal Web UI, and the memo that lists of runs show."""

import json
from collections.abc import Iterable

from temporalio.common import SearchAttributeKey

PIPELINE = SearchAttributeKey.for_keyword("SluicePipeline")
TABLE = SearchAttributeKey.for_keyword_list("SluiceTable")
BRANCH = SearchAttributeKey.for_keyword("SluiceBranch")
OUTCOME = SearchAttributeKey.for_keyword("SluiceOutcome")
ALL = (PIPELINE, TABLE, BRANCH, OUTCOME)
SUMMARY_MEMO = "sluice.summary"
"""The memo with what a run does, in one line: Temporal lists memos, and shows summaries of single runs alone."""
RELEASES_MEMO = "sluice.releases"
"""The memo with the id of the run whose quarantine a run releases or repairs."""
LONGEST_SUMMARY = 200
"""So many characters a summary may have."""
_MAX_VALUE_BYTES = 2_000
"""So many bytes of JSON the value of an attribute may have: the server refuses a start with more than 2,048."""


def indexed_tables(tables: Iterable[str]) -> list[str]:
    """Return the first of a run's tables, as many as its search attribute may hold."""
    listed: list[str] = []
    size = 2
    for table in tables:
        size += len(json.dumps(table).encode()) + 1
        if size > _MAX_VALUE_BYTES:
            break
        listed.append(table)
    return listed

"""Search attributes to find runs in the Temporal Web UI, and memos for lists of runs."""

import json
from collections.abc import Iterable

from temporalio.common import SearchAttributeKey

PIPELINE = SearchAttributeKey.for_keyword("SluicePipeline")
TABLE = SearchAttributeKey.for_keyword_list("SluiceTable")
BRANCH = SearchAttributeKey.for_keyword("SluiceBranch")
OUTCOME = SearchAttributeKey.for_keyword("SluiceOutcome")
ALL = (PIPELINE, TABLE, BRANCH, OUTCOME)
SUMMARY_MEMO = "sluice.summary"
"""Memo with a one-line description of a run. Temporal's lists include memos, but not the summaries of runs."""
RELEASES_MEMO = "sluice.releases"
"""Memo with the id of the quarantined run that a run releases or repairs."""
ROLLS_BACK_MEMO = "sluice.rolls_back"
"""Memo with the ids of the runs that a roll-back takes back."""
RESULT_MEMO = "sluice.result"
"""Memo with the result of a cancelled run, because Temporal does not store a result for it."""
LONGEST_SUMMARY = 200
"""Maximum length of a summary, in characters."""
_MAX_VALUE_BYTES = 2_000
"""Maximum size of an attribute's value as JSON, in bytes. The server refuses a start with more than 2,048."""


def indexed_tables(tables: Iterable[str]) -> list[str]:
    """Return the first tables of a run, as many as fit into its search attribute."""
    listed: list[str] = []
    size = 2
    for table in tables:
        size += len(json.dumps(table).encode()) + 1
        if size > _MAX_VALUE_BYTES:
            break
        listed.append(table)
    return listed

"""The search attributes by which runs are found in the Temporal Web UI."""

from temporalio.common import SearchAttributeKey

PIPELINE = SearchAttributeKey.for_keyword("SluicePipeline")
TABLE = SearchAttributeKey.for_keyword_list("SluiceTable")
BRANCH = SearchAttributeKey.for_keyword("SluiceBranch")
OUTCOME = SearchAttributeKey.for_keyword("SluiceOutcome")
ALL = (PIPELINE, TABLE, BRANCH, OUTCOME)

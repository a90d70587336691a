"""Convert SodaCL's freshness checks, which limit the age of the newest value of a column."""

import re
from collections.abc import Mapping
from typing import Any

from importing.drafts import Draft, Limits, Target, finished, native, sql_check
from importing.expectations.tables import measured
from importing.imported import NotCarriedOver, Parameters
from importing.soda.settings import ALERTS, alerts_of, require_known
from importing.soda.text import threshold_sql, value_of
from importing.sql_text import column_sql, plain_name

FRESHNESS = re.compile(
    r"freshness(?:\s+using\s+(?P<old>\S+)|\s*\((?P<column>[^)]+)\))(?:\s+with\s+(?P<now>\S+))?(?:\s*<\s*(?P<age>.+))?"
)


def freshness_checks(match: re.Match[str], settings: Mapping[str, Any], target: Target, title: str) -> list[Parameters]:
    """Return the checks of a freshness check. Without a value it fails, even if it has only warnings.

    Raises:
        NotCarriedOver: a part of it has no equivalent.
    """
    require_known(settings, "filter", *ALERTS)
    column, alerts = (match["column"] or match["old"]).strip(), alerts_of(settings, match["age"])
    if match["now"]:
        raise NotCarriedOver(f"{match['now']} is set when Soda scans")
    age = f"unix_timestamp(current_timestamp()) - unix_timestamp(max(CAST({column_sql(column)} AS TIMESTAMP)))"
    if alerts:
        raised = [(level, f"NOT coalesce({threshold_sql(alert)}, TRUE)") for level, alert in alerts]
        if all(level == "warn" for level, _ in alerts):
            raised.append(("fail", "observed IS NOT NULL"))
        return [sql_check(measured(age, good, target), title, level) for level, good in raised]
    seconds = int(value_of(match["age"]))
    name = plain_name(column)
    checks = native("freshness", column=name, max_age=f"{seconds}s") if name and seconds else []
    query = measured(age, f"coalesce(observed < {seconds}, FALSE)", target)
    return finished(Draft(query, checks), target, Limits(), title)

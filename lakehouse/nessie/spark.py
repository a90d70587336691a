"""Spark configuration for Nessie, and explanations of Nessie's errors in a job's output."""

import re
from collections.abc import Iterable

_IMPLEMENTATION = "org.apache.iceberg.nessie.NessieCatalog"
_NOBODY = "http://127.0.0.1:9/api/v2"
"""Address without a server: the port of the discard protocol."""
_REFUSED = re.compile(r"'(?P<operation>[A-Z_]+)' is not allowed for role '[^']*' on \w+ '(?P<object>[^']*)'")

_ABSENT = re.compile(
    r"request against '[^']*/api/|Timeout connecting to '[^']*/api/|[Nn]essie\S*Exception.*\(HTTP/(?:429|5\d\d)\)"
)
"""Messages of Nessie's Java client about a server that is unreachable, is starting, or cannot serve."""


def spark_properties(
    spark_catalog: str, uri: str, branch: str = "", at: str | None = None, token: str = ""
) -> dict[str, str]:
    """Return the Spark configuration of a catalog that is bound to a branch, or pinned to a hash of it.

    Args:
        token: the identity of a writer, which may change only the branches of attempts.
    """
    prefix = f"spark.sql.catalog.{spark_catalog}"
    properties = {
        f"{prefix}.catalog-impl": _IMPLEMENTATION,
        f"{prefix}.uri": uri,
        f"{prefix}.ref": branch,
        f"{prefix}.ref.hash": at or "",
        f"{prefix}.authentication.type": "BEARER" if token else "",
        f"{prefix}.authentication.token": token,
    }
    return {key: value for key, value in properties.items() if value}


def unreachable_spark_properties(spark_catalog: str) -> dict[str, str]:
    """Return the configuration of a catalog that loads Nessie's classes and reaches no server."""
    return spark_properties(spark_catalog, _NOBODY)


def explain_absence(lines: Iterable[str]) -> str | None:
    """Return a description of Nessie's outage if the output of a job reports one, else None."""
    absent = next((line.strip() for line in lines if _ABSENT.search(line)), None)
    return f"Nessie was unavailable to the job: {absent[:500]}" if absent else None


def explain_refused_write(lines: Iterable[str]) -> str | None:
    """Return a description of the write that Nessie refused if the output of a job reports one, else None."""
    refused = next((match for line in lines if (match := _REFUSED.search(line))), None)
    if refused is None:
        return None
    return f"the job tried to change {refused['object']!r}, and Nessie refused it ({refused['operation']})"

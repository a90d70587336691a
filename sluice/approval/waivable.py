"""Find the failed checks that may be waived, and identify each by the definition of its check."""

import hashlib
import json
from collections.abc import Mapping, Sequence

from sluice.approval.waivers import WaivableCheck
from sluice.checks.base import Check
from sluice.checks.results import check_title
from sluice.checks.verdicts import CheckResult
from sluice.pipeline.table import Table


def check_fingerprint(check: Check, pipeline: str) -> str:
    """Return the SHA-256, in hexadecimal, of the name of a pipeline and the definition of a check.

    The definition has all parameters of the check except `waivable`, without its line in the file. The name of the
    pipeline binds a signed waiver to that pipeline.
    """
    parameters = check.model_dump(mode="json", by_alias=True, exclude={"at", "waivable"})
    text = json.dumps([pipeline, parameters], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def waivable_checks(verdicts: Sequence[CheckResult], tables: Mapping[str, Table], pipeline: str) -> list[WaivableCheck]:
    """Return the failed checks of an audit of a pipeline that may be waived; empty if any other verdict blocks.

    A check that could not be answered may not be waived: nobody can know what the waiver would accept.
    """
    checks = []
    for verdict in verdicts:
        if not verdict.blocks:
            continue
        listed = tables[verdict.table].checks if verdict.table in tables else []
        check = listed[verdict.index] if 0 <= verdict.index < len(listed) else None
        if verdict.verdict != "fail" or check is None or not check.waivable:
            return []
        checks.append(
            WaivableCheck(
                table=verdict.table,
                index=verdict.index,
                check=check_title(check),
                fingerprint=check_fingerprint(check, pipeline),
            )
        )
    return checks

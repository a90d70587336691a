"""What the release of a quarantine does: a run that audits its rows again, by the checks of a pipeline."""

from collections.abc import Sequence

from sluice.contracts.existing_rows import Resume
from sluice.contracts.lake_queries import QuarantineSummary
from sluice.errors import InvalidPipeline
from sluice.pipeline.model import Pipeline


def plan_release(branch: str, base: str, quarantined_hash: str, statements: Sequence[str]) -> Resume:
    """Plan what a release starts from: exactly the rows that are quarantined, repaired by these SQL statements.

    Once the rows are published, the quarantined branch is deleted.
    """
    return Resume(
        branch=branch, base=base, head=quarantined_hash, statements=list(statements), obsolete_branches=[branch]
    )


def choose_pipeline(quarantined: QuarantineSummary, earlier: Pipeline | None, given: Pipeline | None) -> Pipeline:
    """Return the pipeline that audits released rows: the one that is given, or that of the quarantined run.

    Raises:
        InvalidPipeline: there is neither, or it is another pipeline.
    """
    pipeline = given or earlier
    if pipeline is None:
        raise InvalidPipeline(
            f"Temporal no longer has the history of run {quarantined.run_id}: name its pipeline file by --pipeline"
        )
    if pipeline.name != quarantined.pipeline:
        raise InvalidPipeline(
            f"{quarantined.branch} is of the pipeline {quarantined.pipeline!r}, not of {pipeline.name!r}"
        )
    return pipeline

"""List a landing zone: find the files that arrived, and make batches of those that can be loaded now."""

from dataclasses import dataclass

from temporalio import activity

from activities.run.source_progress import run_with_progress
from lakehouse.arrivals.collector import ArrivalCollector
from lakehouse.source_files import OnProgress
from runtime.pipeline.pipeline_input import pipeline_of_text
from sluice.contracts.arrivals import CollectArrivalsInput, CollectArrivalsResult
from sluice.errors import CredentialsExpired, InvalidInput, InvalidPipeline, ManifestUnreadable, ServiceUnavailable
from sluice.redaction import redacted

_TRIES = 5
"""Number of tries before the activity reports that a store or main does not answer. The next listing tries again."""


@dataclass(frozen=True)
class CollectArrivalsActivity:
    """The activity `collect_arrivals`. It lists and reads the landing zone, so the worker must have access to it."""

    collector: ArrivalCollector

    @activity.defn(name="collect_arrivals")
    async def collect_arrivals(self, input: CollectArrivalsInput) -> CollectArrivalsResult:
        """Return the batches that can be loaded now, or the reason why the zone cannot be listed."""

        def work(on_progress: OnProgress) -> CollectArrivalsResult:
            return self.collector.collect(pipeline_of_text(input.pipeline), input, on_progress)

        try:
            return await run_with_progress(work, activity.heartbeat, "listing the landing zone")
        except (InvalidPipeline, InvalidInput, ManifestUnreadable, CredentialsExpired) as error:
            return CollectArrivalsResult(problem=_describe(error))
        except ServiceUnavailable as error:
            if activity.info().attempt < _TRIES:
                raise
            return CollectArrivalsResult(problem=_describe(error), is_passing=True)


def _describe(error: Exception) -> str:
    return redacted(str(error))[:1000]

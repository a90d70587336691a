"""Rules of a landing zone that decide which files are refused or ignored."""

import hashlib

from sluice.pipeline.model import Pipeline


def digest_of_rules(pipeline: Pipeline) -> str:
    """Return a digest of the rules that decide which files are refused or ignored."""
    assert pipeline.arrival and pipeline.write.source, "a landing zone has both"
    rules = f"{pipeline.write.source.model_dump_json()} {pipeline.arrival.overwritten}"
    return hashlib.sha256(rules.encode()).hexdigest()

"""Checks before a rebase, a merge or a release that main does not contain the input of the run by now."""

from collections.abc import Mapping

from sluice.contracts.input import PublicationCheck
from sluice.contracts.run_request import RunRequest
from sluice.contracts.selected_input import ManifestRef
from sluice.input.manifest import ManifestHeader
from sluice.input.publications import read_input_record
from sluice.input.selection import asks_what_was_loaded
from sluice.pipeline.loading_rules import is_known_as_a_whole
from sluice.pipeline.scope import NO_SCOPE, LoadScope


def check_of_run(request: RunRequest, manifest: ManifestRef | None) -> PublicationCheck | None:
    """Return the check that main does not contain a run's input, or None if the input may be published again.

    Args:
        manifest: files that the present attempt of the run loads.
    """
    if request.resume:
        return request.resume.published
    if request.again or request.restore:
        return None
    tables = list(request.pipeline.tables)
    if manifest and asks_what_was_loaded(request.pipeline.write.loaded_files, again=request.again):
        return PublicationCheck(tables=tables, manifest=manifest)
    name, write = request.pipeline.name, request.pipeline.write
    replaces = write.traits.replaces if write.built_in else ""
    return PublicationCheck(
        tables=tables,
        manifest=manifest,
        pipeline=name,
        digest=request.input.digest,
        replaces=replaces,
        scope=request.input.scope if is_known_as_a_whole(write) else NO_SCOPE,
    )


def check_of_quarantine(properties: Mapping[str, str], header: ManifestHeader | None) -> PublicationCheck | None:
    """Return the check that main does not contain the input of a quarantine, for its release.

    A release needs the check even if the quarantined run was to load files again, because it is a new decision of a
    person.

    Args:
        properties: properties of the commit that describes the quarantine.
        header: header of the quarantine's input manifest, if there is one.
    """
    record = read_input_record(properties)
    if record is None:
        return None
    if header and record.manifest and (header.policy != "reload" or header.again):
        return PublicationCheck(tables=header.tables, manifest=record.manifest)
    if record.digest:
        replaces = header.replaces if header else ""
        return PublicationCheck(
            tables=list(record.tables),
            manifest=record.manifest,
            pipeline=record.pipeline,
            digest=record.digest,
            replaces=replaces,
            scope=NO_SCOPE if replaces else LoadScope(content=record.scope),
        )
    return None

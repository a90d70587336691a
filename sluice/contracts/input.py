"""Input of the activity that selects the files of a run, and the check for an input on main."""

from sluice.base_model import WireMessage
from sluice.contracts.load_order import ANY_ORDER, LoadOrder
from sluice.contracts.references import BranchMessage, RunRef
from sluice.contracts.selected_input import ManifestRef
from sluice.pipeline.scope import NO_SCOPE, LoadScope
from sluice.pipeline.source import Source
from sluice.pipeline.write import Write
from sluice.pipeline.write_modes import LoadedFilePolicy, Replaced


class SelectInputInput(BranchMessage):
    """Input of `select_input`: list the files of a source, and select those that an attempt loads."""

    run_ref: RunRef
    source: Source
    tables: list[str]
    """Tables that the run loads its files into."""
    input_digest: str
    """Identity of the files that the run was started for."""
    scope: LoadScope = NO_SCOPE
    """Partition and scheduled time that the files are loaded for."""
    policy: LoadedFilePolicy
    order_matters: bool = False
    """True if rows of a later load replace those of an earlier one."""
    replaces: Replaced = ""
    """Scope that each load of the pipeline replaces."""
    write: Write | None = None
    """Write of the run, if its files may be loaded only in the order of the loads on main."""
    order: LoadOrder = ANY_ORDER
    again: bool
    reads_selection: bool
    """True if the job reads only the selected files. A user's program may read any files."""
    one_content_per_path: bool = False
    """True if the run refuses a file whose path main has with other content."""
    loads_all_contents: bool = False
    """True if each content of a path is loaded."""
    pipeline_digest: str = ""
    """Digest of the pipeline; empty in histories from before this field existed."""
    listed: ManifestRef | None = None
    """Manifest of an earlier attempt. Its files are the input of the run, even if the folder has changed since."""


class PublicationCheck(WireMessage):
    """A check for the presence of an input on main, before a rebase, a merge or a release."""

    tables: list[str]
    manifest: ManifestRef | None = None
    """Manifest of the files, if the input has any."""
    pipeline: str = ""
    digest: str = ""
    """Identity of the whole input, if its files may be loaded again together with others. Then it is looked up, and
    not the files. Those of a joint publish are the identities in the manifest."""
    replaces: Replaced = ""
    """Scope that each load of the pipeline replaces. A publication that a later one replaced does not count."""
    scope: LoadScope = NO_SCOPE
    """Partition of an input that is known only as a whole. Main must not contain a part of it, nor a larger one."""

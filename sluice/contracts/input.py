"""Inputs and results of the activity that selects the files of a run, and how a run names its input manifest."""

from pydantic import Field

from sluice.base_model import Model
from sluice.contracts.references import BranchRef, RunRef
from sluice.pipeline.scope import NO_SCOPE, LoadScope
from sluice.pipeline.source import Source
from sluice.pipeline.write_modes import LoadedFilePolicy, Replaced


class ManifestRef(Model):
    """Where the input manifest of an attempt lies, and the SHA-256 of its content."""

    location: str
    digest: str


class SelectInputInput(Model):
    """Input of `select_input`: list the files of a source, and decide which of them an attempt loads."""

    run_ref: RunRef
    branch: BranchRef
    source: Source
    tables: list[str]
    """The tables that the run loads its files into."""
    input_digest: str
    """The identity of the files that the run was started for."""
    scope: LoadScope = NO_SCOPE
    """The partition and the scheduled time that the files are loaded for."""
    policy: LoadedFilePolicy
    order_matters: bool = False
    """Whether rows of a later load take the place of those of an earlier one."""
    again: bool
    reads_selection: bool
    """Whether the job reads the selected files alone: a program of the user's reads what it wants."""
    one_content_per_path: bool = False
    """Whether a file is refused whose path main holds with other content."""
    listed: ManifestRef | None = None
    """The manifest of an earlier attempt: its files are the input of the run, whatever is in the folder by now."""


class LeftOutFile(Model):
    """A file that a run left out, and the run that loaded it before, or the file with the same content."""

    path: str
    why: str


class SelectedInput(Model):
    """The files that a run loads, in numbers: the manifest holds their names."""

    manifest: ManifestRef
    files: int
    """How many files are loaded."""
    bytes: int = 0
    loaded_before: int = 0
    """How many files were left out because an earlier run loaded them into the table."""
    duplicates: int = 0
    """How many files were left out because another file of the same run has the same content."""
    left_out: list[LeftOutFile] = Field(default_factory=list)
    """Some of the files that were left out."""
    summary: str = ""
    """The numbers in a sentence."""


class PublicationCheck(Model):
    """How to find out whether main holds an input by now: for a rebase, a merge and a release."""

    tables: list[str]
    manifest: ManifestRef | None = None
    """The files; None where the input has none, or they are not known one by one."""
    pipeline: str = ""
    digest: str = ""
    """The identity of the whole input: that is looked for where files may be loaded again, together with others."""
    replaces: Replaced = ""
    """What each load of the pipeline replaces: a publication that a later one replaced does not count."""

"""The files that a run loads, and the manifest that lists them."""

from pydantic import Field

from sluice.base_model import WireMessage


class ManifestRef(WireMessage):
    """Location of the input manifest of an attempt, and the SHA-256 of its content."""

    location: str
    digest: str


class LeftOutFile(WireMessage):
    """A file that a run left out: an earlier run loaded it, or another file has the same content."""

    path: str
    why: str


class SelectedInput(WireMessage):
    """Summary of the files that a run loads. The manifest has their names."""

    manifest: ManifestRef
    files: int
    """Number of files that the run loads."""
    bytes: int = 0
    loaded_before: int = 0
    """Number of files that were left out because an earlier run loaded them into the table."""
    duplicates: int = 0
    """Number of files that were left out because another file of the same run has the same content."""
    left_out: list[LeftOutFile] = Field(default_factory=list)
    """Some of the files that were left out."""
    summary: str = ""
    """The numbers as a sentence."""

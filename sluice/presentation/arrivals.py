"""What people read of landing zones."""

from collections.abc import Mapping

from sluice.contracts.arrivals import ROLLED_BACK, ArrivalEntry, Batch, ZoneNotice

_LONGEST = 500


def notice_line(notice: ZoneNotice) -> str:
    """Return the line that people get of a landing zone: plain text that mentions nobody."""
    text = " ".join(f"arrivals of {notice.name}: {notice.text}".split())[:_LONGEST]
    return ":warning: " + text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def describe_batch(batch: Batch) -> str:
    """Return what a batch is, in a few words."""
    files = f"{batch.ref.files} file{'s' * (batch.ref.files > 1)}"
    run = f" by {batch.workflow_id}" if batch.workflow_id else ""
    return f"{files} {batch.state}{run}"


def describe_file(file: ArrivalEntry, batches: Mapping[str, Batch]) -> tuple[str, str]:
    """Return the state of a file, and why it is in that state."""
    if file.status == "waiting":
        return "waiting", "it is not settled, or its batch is not closed"
    after = f"; {file.after}" if file.after else ""
    if file.status == "loaded":
        return "rolled back" if file.detail.endswith(ROLLED_BACK) else "published", f"run {file.detail}{after}"
    if file.status != "in a batch":
        return file.status, file.detail + after
    batch = batches.get(file.detail)
    if batch is None:
        return "waiting", f"batch {file.detail}"
    return batch.state, f"batch {file.detail}" + (f": {batch.reason}" if batch.reason else "")

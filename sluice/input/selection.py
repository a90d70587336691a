"""Selection of the files of a source that a run loads: by default none that main contains, and none twice."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from sluice.command_line import OVER_YOUNGER
from sluice.contracts.run_request import InputFile
from sluice.contracts.selected_input import LeftOutFile
from sluice.errors import AlreadyPublished, InvalidInput
from sluice.input.held_files import HeldFile, LoadedFile
from sluice.input.manifest import ManifestFile
from sluice.pipeline.scope import NO_SCOPE, LoadScope
from sluice.pipeline.write_modes import LoadedFilePolicy
from sluice.sizes import format_list
from sluice.times import format_time

_NAMED = 5
"""Maximum number of files named in messages and results."""
_NAME_LENGTH = 300


LoadedByPath = Mapping[str, LoadedFile]
"""The load that brought each file to main, by the path of the file."""


def asks_what_was_loaded(policy: LoadedFilePolicy, *, again: bool) -> bool:
    """Return True if a run loads only files that main does not contain yet."""
    return policy != "reload" and not again


def refuse_partly_loaded(held: Iterable[HeldFile]) -> None:
    """Check that the run loads these files as main contains them: whole, or partition by partition.

    Raises:
        InvalidInput: a file was loaded whole and a partition of it is wanted, or the reverse. Or main knows the input
            only as a whole, and has a larger or a smaller partition of it. Rows would be doubled.
    """
    for each in held:
        if each.is_partly:
            raise InvalidInput(f"{describe_partly(each)}: rows would be loaded twice. To load them anyway, add --again")


def describe_partly(held: HeldFile) -> str:
    """Describe the loaded part and the wanted part of a file, or of an input that is known only as a whole."""
    load, path = held.load, _shortened(held.wanted.path)
    loaded, wanted = (f"for {each.content}" if each.content else "whole" for each in (load.scope, held.wanted.scope))
    run = load.workflow_id or load.run_id
    if not path:
        wanted = held.wanted.scope.label
        return f"run {run} loaded {load.scope.label} into {load.table}, and {wanted} would now be loaded"
    return f"run {run} loaded {path} {loaded} into {load.table}, and it would now be loaded {wanted}"


def refuse_overtaken(held: Sequence[HeldFile]) -> None:
    """Refuse renamed files whose content may be older than that of the table (`overtaken_files`).

    Raises:
        InvalidInput: a file may be the newest delivery, or a copy of an old one.
    """
    if held:
        more = f" ({len(held) - 1} more such files)" if len(held) > 1 else ""
        raise InvalidInput(
            f"{describe_overtaken(held[0])}{more}. If it is the newest, load it by {OVER_YOUNGER}; if it is an old "
            "copy, remove it from the input"
        )


def describe_overtaken(held: HeldFile) -> str:
    """Describe a renamed file, and the first load of other content after that of its own content."""
    load, later = held.load, held.overtaken_by
    by = (later.workflow_id or later.run_id) if later else ""
    is_same = held.wanted.path == load.path
    return (
        f"{_shortened(held.wanted.path)} has {'again ' if is_same else ''}the content "
        f"{'that' if is_same else f'of {_shortened(load.path)}, which'} run "
        f"{load.workflow_id or load.run_id} loaded into {load.table} ({format_time(load.at)}). Run {by} loaded other "
        "content after that, so the rows of this file may be older than those of the table"
    )


def refuse_changed_partition(loads: Sequence[LoadedFile], scope: LoadScope) -> None:
    """Check that a partition is not appended to rows of other content of its files.

    Args:
        loads: the loads of the other content for this partition.

    Raises:
        InvalidInput: main contains the partition from other content.
    """
    if loads:
        raise InvalidInput(
            f"{describe_other_content(loads)} for {scope.label}, and `mode: append` would add the same rows again. For "
            "files that grow or are corrected, use `mode: merge` with keys, or `overwrite_partitions`. To append them "
            "anyway, add --again; or roll that run back first"
        )


def refuse_unknown_runs(runs: Collection[str]) -> None:
    """Check that main knows the runs whose rows are requeued.

    Raises:
        InvalidInput: it does not know one of them.
    """
    if runs:
        raise InvalidInput(
            f"main has no commit of run {min(runs)}, as after a joint publish: it is unknown if files of its "
            "quarantined rows were loaded again later, corrected. To requeue the rows of one other run, add --run; to "
            f"requeue these nevertheless, add {OVER_YOUNGER}"
        )


def describe_dropped_table(table: str) -> str:
    """Return the reason to refuse a requeue into another table than the one that the rows were quarantined from."""
    return (
        f"{table} was dropped and created again after rows of it were quarantined. If their files were loaded again, "
        f"the new table would have the rows twice. To requeue the rows of one later run, add --run; to requeue these "
        f"nevertheless, add {OVER_YOUNGER}"
    )


def select_files(
    files: Sequence[InputFile],
    loaded: LoadedByPath,
    policy: LoadedFilePolicy,
    *,
    reads_selection: bool = True,
    scope: LoadScope = NO_SCOPE,
) -> list[ManifestFile]:
    """Decide for each file if the run loads it.

    Args:
        loaded: files that main contains; empty if the run loads its files regardless of main.
        reads_selection: True if the job can leave files out. A user's program reads whatever it wants.
        scope: partition and scheduled time for which the files are loaded.

    Raises:
        AlreadyPublished: no file is left to load.
        InvalidInput: some files were loaded before, and they cannot be left out, or the pipeline refuses that.
    """
    before = [file for file in files if file.path in loaded]
    if before and len(before) == len(files):
        raise AlreadyPublished(_refused(before, len(files), loaded))
    if before and (policy == "refuse" or not reads_selection):
        raise InvalidInput(_refused(before, len(files), loaded))
    selected: list[ManifestFile] = []
    paths: dict[str, str] = {}
    for file in files:
        fields = {"path": file.path, "size": file.size, "identity": file.identity, "scope": scope}
        if file.path in loaded:
            fields |= {"left_out": "loaded before", "by": loaded[file.path].run_id}
        elif reads_selection and file.identity in paths:
            fields |= {"left_out": "same content", "by": paths[file.identity]}
        else:
            paths.setdefault(file.identity, file.path)
        selected.append(ManifestFile.model_validate(fields))
    return selected


def name_left_out(files: Sequence[ManifestFile], loaded: LoadedByPath) -> list[LeftOutFile]:
    """Return some of the files that are left out, with the reasons, for people."""
    left_out = [file for file in files if file.left_out]
    return [LeftOutFile(path=_shortened(file.path), why=_why(file, loaded)) for file in left_out[:_NAMED]]


def describe_selection(files: Sequence[ManifestFile], loaded: LoadedByPath) -> str:
    """Return the number of loaded files, and of files left out by reason; empty if all are loaded."""
    before = [file for file in files if file.left_out == "loaded before"]
    duplicates = [file for file in files if file.left_out == "same content"]
    if not before and not duplicates:
        return ""
    parts = [f"{_count(len(files) - len(before) - len(duplicates))} loaded"]
    if before:
        parts.append(f"{len(before)} left out: loaded before by {_runs(before, loaded)} ({_names(before)})")
    if duplicates:
        parts.append(f"{len(duplicates)} left out: the same content as another file of this run ({_names(duplicates)})")
    return ", ".join(parts)


def describe_changed_files(loads: Sequence[LoadedFile]) -> str:
    """Describe files that a run appends although main contains other content of their paths.

    Args:
        loads: the loads of the other content.
    """
    if not loads:
        return ""
    first, more = loads[0], f" and {_count(len(loads) - 1)} more" if len(loads) > 1 else ""
    were, both = ("were", "each of them and its earlier content") if more else ("was", "both contents")
    return (
        f"{_shortened(first.path)}{more} {were} loaded before with other content (run "
        f"{first.workflow_id or first.run_id}, {format_time(first.at)}): rows that {both} have are in {first.table} "
        "twice now. For files that grow or are corrected, use `mode: merge` with keys, or `overwrite_partitions`"
    )


def describe_overlap(overlap: Sequence[HeldFile]) -> str:
    """Return the reason to refuse a rebase, a merge or a release: files that main contains by now, and their runs."""
    if partly := next((each for each in overlap if each.is_partly), None):
        return describe_partly(partly)
    loads = [each.load for each in overlap]
    if not loads[0].path:  # known only by the identity of the whole input
        scope = f" for {loads[0].scope.label}" if loads[0].scope.label else ""
        published = f"published by run {loads[0].workflow_id}, commit {loads[0].commit[:12]}"
        return f"main contains its input{scope} already, {published}"
    names = format_list([_shortened(each.path) for each in loads], _NAMED)
    runs = list(dict.fromkeys(each.workflow_id or each.run_id for each in loads))
    first = loads[0]
    return (
        f"main contains {_count(len(loads))} of its input already, loaded into {first.table} by run "
        f"{', '.join(runs[:_NAMED])} ({names}; commit {first.commit[:12]}, {format_time(first.at)})"
    )


def describe_other_content(loads: Sequence[LoadedFile]) -> str:
    """Describe the paths for which main contains other content by now, and the run that loaded the first of them."""
    first, more = loads[0], f" and of {_names(loads[1:])}" if len(loads) > 1 else ""
    return (
        f"main contains other content of {_shortened(first.path)}{more}: run {first.workflow_id or first.run_id} "
        f"loaded {'the first' if more else 'it'} into {first.table} (commit {first.commit[:12]}, "
        f"{format_time(first.at)})"
    )


def describe_replacing_load(load: LoadedFile) -> str:
    """Return the reason not to append rows after a load of their pipeline in a mode whose later rows replace others."""
    return (
        f"run {load.workflow_id or load.run_id} of another version of this pipeline, whose later rows replace earlier "
        f"ones, wrote {load.table} after the files of this input were selected (commit {load.commit[:12]}, "
        f"{format_time(load.at)}): main may have their rows already, or younger ones"
    )


def describe_overwritten_input(loads: Sequence[LoadedFile]) -> str:
    """Return the reason to refuse files of a landing zone whose paths main contains with other content."""
    return (
        f"{describe_other_content(loads)}. The pipeline loads one content of each path, so the run loads none of its "
        "files. If its landing zone is not deployed, move the overwritten files away, or `deploy` it: a landing zone "
        "loads the other files. With `overwritten: load`, the run loads all its files"
    )


def describe_correction(own: LoadedFile, later: LoadedFile) -> str:
    """Return the reason to refuse a requeue: the newer content of a file may have the requeued rows, corrected.

    Args:
        own: the load of the rows.
        later: the load of the newer content.
    """
    return (
        f"{describe_other_content([later])}, after run {own.run_id} quarantined rows of the earlier content. If the "
        "newer content has these rows, the table would have them twice. To requeue the rows of one other run, add "
        f"--run; to requeue these nevertheless, add {OVER_YOUNGER}"
    )


def _refused(before: Sequence[InputFile], matched: int, loaded: LoadedByPath) -> str:
    first = loaded[before[0].path]
    which = f"all {matched} files" if matched == len(before) > 1 else f"{len(before)} of {matched} files"
    which = "this input" if matched == len(before) == 1 else which
    return (
        f"{which} {'was' if len(before) == 1 else 'were'} already published: loaded into {first.table} by "
        f"{_runs(before, loaded)}, commit {first.commit[:12]} on main, {format_time(first.at)} ({_names(before)}). "
        "To load them again, add --again; `files` lists what was loaded"
    )


def _runs(files: Sequence[InputFile] | Sequence[ManifestFile], loaded: LoadedByPath) -> str:
    runs = list(dict.fromkeys(loaded[file.path].workflow_id for file in files if file.path in loaded))
    return f"run{'s' if len(runs) > 1 else ''} {format_list(runs, _NAMED)}"


def _names(files: Sequence[InputFile] | Sequence[ManifestFile] | Sequence[LoadedFile]) -> str:
    return format_list([_shortened(file.path) for file in files], _NAMED)


def _why(file: ManifestFile, loaded: LoadedByPath) -> str:
    if file.left_out == "same content":
        return f"same content as {_shortened(file.by)}"
    load = loaded[file.path]
    return f"loaded before by run {load.workflow_id or load.run_id}, commit {load.commit[:12]}, {format_time(load.at)}"


def _count(number: int) -> str:
    return f"{number} file{'' if number == 1 else 's'}"


def _shortened(path: str) -> str:
    return path if len(path) <= _NAME_LENGTH else "…" + path[-_NAME_LENGTH:]

"""Paths of source files: make them absolute, match patterns, and recognise names that Spark ignores."""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sluice.errors import InvalidInput
from sluice.pipeline.source import Source

_WILDCARDS = "*?["
_WILDCARD = re.compile(r"[*?\[\]]")
_ANY_FOLDERS = "**"
_BEING_COPIED = "._COPYING_"


def absolute_source(source: Source, folder: Path | None = None) -> Source:
    """Return the source with absolute local paths, since a worker may run in another folder.

    Args:
        folder: the base of relative paths; None means the current folder.
    """
    paths = [path if is_remote(path) else str(absolute_path(without_scheme(path), folder)) for path in source.paths]
    return source.model_copy(update={"path": paths[0] if isinstance(source.path, str) else paths})


def absolute_path(path: str, folder: Path | None = None) -> Path:
    """Return a local path as an absolute one, with `~` and `~somebody` expanded.

    Raises:
        InvalidInput: no file can have such a path.
    """
    try:
        absolute = ((folder or Path()) / Path(path).expanduser()).absolute()
        absolute.exists()
    except (OSError, ValueError, RuntimeError) as error:
        raise InvalidInput(f"{path[:200]!r} is not a valid path: {error}"[:500]) from error
    return absolute


def base_path(source: Source) -> str | None:
    """Return the directory of a source that is one directory. Its folders named `column=value` become columns."""
    stated = next((value for key, value in source.options.items() if key.lower() == "basepath"), None)
    if stated:
        return stated
    (path,) = source.paths if len(source.paths) == 1 else ("",)
    if not path:
        return None
    if is_remote(path):
        return None if has_wildcards(path) or Path(urlsplit(path).path).suffix else path
    local = absolute_path(without_scheme(path))
    return str(local) if local.is_dir() else None


def source_of_files(source: Source, paths: list[str]) -> Source:
    """Return a source that lists some of its files by name, with the columns from their folders."""
    base = base_path(source)
    is_partitioned = any(partition_of(path, base) for path in paths)
    stated = any(key.lower() == "basepath" for key in source.options)
    options = {**source.options, "basePath": base} if base and is_partitioned and not stated else source.options
    return source.model_copy(update={"path": paths, "options": options})


def partition_of(path: str, base: str | None) -> str:
    """Return the folders named `column=value` in a path below the base path, in their order."""
    prefix = f"{base.rstrip('/')}/" if base else ""
    if not prefix or not path.startswith(prefix):
        return ""
    return "/".join(part for part in path[len(prefix) :].split("/")[:-1] if "=" in part)


def folder_columns(path: str, base: str | None) -> list[str]:
    """Return the columns that Spark makes from the folders of a file below the base path."""
    return [unquote(part.partition("=")[0]) for part in partition_of(path, base).split("/") if part]


def is_remote(path: str) -> bool:
    """Return True if a path is a URL of a store, not a local file."""
    return "://" in path and not path.startswith("file:")


def without_scheme(path: str) -> str:
    """Return the path of a `file:` URL, read literally as Hadoop does; any other path unchanged."""
    if not path.startswith("file:"):
        return path
    plain = path.removeprefix("file:").removeprefix("//localhost")
    return "/" + plain.lstrip("/") if plain.startswith("/") else plain


def has_wildcards(text: str) -> bool:
    """Return True if a path, or a part of one, may be a pattern."""
    return any(character in text for character in _WILDCARDS)


def is_hidden(name: str) -> bool:
    """Return True if Spark silently ignores a file because of its name."""
    return (name.startswith("_") and "=" not in name) or name.startswith(".") or name.endswith(_BEING_COPIED)


def part_matches(name: str, pattern: str) -> bool:
    """Return True if a name matches one part of a pattern. Hidden names match only a pattern that begins like them."""
    return name == pattern or (fnmatchcase(name, pattern) and (not is_hidden(name) or is_hidden(pattern)))


def path_matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return True if a file, or a folder that contains it, matches a pattern of parts; `**` matches any folders."""
    if not pattern:
        return not any(map(is_hidden, parts))
    if pattern[0] == _ANY_FOLDERS:
        deeper = bool(parts) and not is_hidden(parts[0]) and path_matches(parts[1:], pattern)
        return path_matches(parts, pattern[1:]) or deeper
    return bool(parts) and part_matches(parts[0], pattern[0]) and path_matches(parts[1:], pattern[1:])


def may_list(path: str, folder: str) -> bool:
    """Return True if listing a path or pattern may find files that are put into a folder; both are absolute.

    A folder above the path counts too, since the files may have folders of their own.
    """
    listed, parts = _parts(path), _parts(folder)
    fixed = _fixed(listed)
    if parts[:fixed] != listed[:fixed]:
        return listed[: len(parts)] == parts
    return _may_match(parts[fixed:], listed[fixed:])


def fixed_folder(path: str) -> str:
    """Return the folder of an absolute local path or pattern before its first wildcard."""
    parts = _parts(path)
    return f"/{'/'.join(parts[: _fixed(parts)])}"


def may_share(first: str, second: str) -> bool:
    """Return True if two absolute paths or patterns may list a common file, judged by their names."""
    return _may_share(_parts(first), _parts(second))


def resolved_pattern(path: str) -> str:
    """Return an absolute local path or pattern, with links before the first wildcard resolved."""
    if is_remote(path) or Path(path).exists():
        return path if is_remote(path) else str(Path(path).resolve())
    parts = _parts(path)
    fixed = _fixed(parts)
    return str(Path("/", *parts[:fixed]).resolve().joinpath(*parts[fixed:]))


def path_below(path: str, file: str) -> str:
    """Return the path of a file below the folder that a path or pattern has before its first wildcard."""
    listed, parts = _parts(path), _parts(file)
    return "/".join(parts[_fixed(listed) :] or parts[-1:])


def _parts(path: str) -> list[str]:
    if not is_remote(path):
        return [part for part in without_scheme(path).split("/") if part]
    scheme, rest = path.split("://", 1)
    name = "s3:" if scheme.lower() in ("s3", "s3a", "s3n") else f"{scheme}:"
    return [name, *(part for part in rest.split("/") if part)]


def _fixed(parts: Sequence[str]) -> int:
    """Return the number of parts before the first one with a wildcard."""
    return next((number for number, part in enumerate(parts) if has_wildcards(part)), len(parts))


def _may_share(first: Sequence[str], second: Sequence[str]) -> bool:
    if not first or not second:  # one is a folder that contains the other
        return True
    if _ANY_FOLDERS in (first[0], second[0]):
        one, other = (first, second) if first[0] == _ANY_FOLDERS else (second, first)
        return _may_share(one[1:], other) or _may_share(one, other[1:])
    return _may_be_one_name(first[0], second[0]) and _may_share(first[1:], second[1:])


def _may_be_one_name(first: str, second: str) -> bool:
    """Return True if a name may match both of two parts of patterns, or if that is hard to decide."""
    if not has_wildcards(first) or not has_wildcards(second):
        return first == second or part_matches(first, second) or part_matches(second, first)
    one, other = _WILDCARD.split(first), _WILDCARD.split(second)
    begins = one[0].startswith(other[0]) or other[0].startswith(one[0])
    return begins and (one[-1].endswith(other[-1]) or other[-1].endswith(one[-1]))


def _may_match(folder: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return True if a file below a folder may match a pattern of parts."""
    if not folder:
        return True
    if not pattern:
        return not any(map(is_hidden, folder))
    if pattern[0] == _ANY_FOLDERS:
        deeper = not is_hidden(folder[0]) and _may_match(folder[1:], pattern)
        return deeper or _may_match(folder, pattern[1:])
    return part_matches(folder[0], pattern[0]) and _may_match(folder[1:], pattern[1:])

"""Read the beginnings of text files before a run, and find those that the run would refuse."""

from collections.abc import Mapping, Sequence
from itertools import islice

from lakehouse.source_files.columns import first_line
from lakehouse.source_files.headers import check_headers
from lakehouse.source_files.identify import describe
from lakehouse.source_files.json_content import check_beginning
from lakehouse.source_files.paths import is_remote
from lakehouse.source_files.text import decoded, stated_encoding
from sluice.contracts.run_request import InputFile
from sluice.errors import InvalidInput
from sluice.pipeline.source import Format, Source

_FILES = 20
"""Maximum number of files whose beginnings are read: the start of a run waits for it."""
_PROBLEMS = 3
"""Maximum number of files that are named."""


def problems_of_beginnings(source: Source, files: Sequence[InputFile]) -> list[str]:
    """Return why a run would refuse some of these files, as far as their beginnings show it.

    They are hints and no errors: a run leaves out a file that main contains, whatever its content.
    """
    format = source.reader_format()
    if format not in ("csv", "json"):
        return []
    options = {key.lower(): value for key, value in source.options.items()}
    local = (file.path for file in files[:_FILES] if not is_remote(file.path))
    problems = (_problem(path, source, format, options) for path in local)
    return list(islice(filter(None, problems), _PROBLEMS))


def _problem(path: str, source: Source, format: Format, options: Mapping[str, str]) -> str:
    encoding = stated_encoding(options)
    try:
        texts = decoded(path, describe(path).read(), encoding, is_json=format == "json")
        if format == "csv":
            line = first_line(texts)
            check_headers([(path, line)] if line else [], source)
        else:
            check_beginning(path, next(texts, ""), encoding, has_line_end="linesep" in options)
    except InvalidInput as error:
        return f"{error}. A run that loads this file fails"
    return ""

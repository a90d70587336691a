"""Encodings in which Spark reads text files, and their names."""

import codecs

UTF_8 = "UTF-8"
READ_AS_UTF_8 = (UTF_8, "US-ASCII")
"""Spark's names of the encodings whose bytes are UTF-8."""
ENCODINGS_WITH_MARK = ("UTF-16", "UTF-32")
"""Encodings whose byte order a mark at the beginning of the file states."""
WIDE_ENCODINGS = ("UTF-16", "UTF-32")
"""Beginnings of Spark's names of the encodings with two or four bytes for each line break."""
_SPARK_NAMES = {
    "utf-8": UTF_8,
    "utf-8-sig": UTF_8,
    "iso8859-1": "ISO-8859-1",
    "ascii": "US-ASCII",
    "utf-16": "UTF-16",
    "utf-16-be": "UTF-16BE",
    "utf-16-le": "UTF-16LE",
    "utf-32": "UTF-32",
}
"""Spark's name of each encoding that it reads, by the name of Python's codec, which has the usual aliases."""
ENCODING_OPTIONS = ("encoding", "charset")
"""Options that state an encoding, in lower case."""


def spark_encoding(name: str) -> str:
    """Return Spark's name of an encoding: `latin1` is ISO-8859-1. An unknown name stays the same."""
    known = _SPARK_NAMES.values()
    return name if name.upper() in known else _SPARK_NAMES.get(_python_name(name), name)


def encoding_problem(name: str) -> str | None:
    """Return why Spark does not read an encoding and what to do instead, or None if it does."""
    if spark_encoding(name).upper() in _SPARK_NAMES.values():
        return None
    names = ", ".join(dict.fromkeys(_SPARK_NAMES.values()))
    if not _python_name(name):
        return f"it is not the name of an encoding: use one of {names}"
    return f"Spark reads {names}, but not {name}: convert the files, for example by `iconv -f {name} -t {UTF_8}`"


def _python_name(name: str) -> str:
    """Return Python's name of an encoding of text; empty if there is no such encoding."""
    try:
        "".encode(name)  # fails for codecs that are not text encodings, such as base64
        return codecs.lookup(name).name
    except (LookupError, ValueError):
        return ""

"""Options of Spark's reader that a pipeline may set, since they lose no data silently.

The lists name the allowed options, not the forbidden ones. So an option of a later Spark is refused until somebody
has reviewed it.
"""

from collections.abc import Mapping

from sluice.errors import InvalidPipeline
from sluice.identifiers import suggestion
from sluice.pipeline.encodings import ENCODING_OPTIONS, encoding_problem, spark_encoding
from sluice.pipeline.value_notation import check_notation

_TEXT = (
    "encoding", "charset", "lineSep", "locale", "timeZone", "dateFormat", "timestampFormat", "timestampNTZFormat",
    "enableDateTimeParsingFallback", "mode", "samplingRatio", "multiLine",
)  # fmt: skip
_ALLOWED: dict[str, tuple[str, ...]] = {
    "csv": (
        *_TEXT, "sep", "delimiter", "quote", "escape", "charToEscapeQuoteEscaping", "unescapedQuoteHandling", "header",
        "enforceSchema", "inferSchema", "preferDate", "prefersDate", "nullValue", "nanValue", "positiveInf",
        "negativeInf", "emptyValue", "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace", "maxColumns",
        "maxCharsPerColumn",
    ),
    "json": (
        *_TEXT, "primitivesAsString", "prefersDecimal", "allowUnquotedFieldNames", "allowSingleQuotes",
        "allowBackslashEscapingAnyCharacter", "allowUnquotedControlChars", "allowNonNumericNumbers",
        "allowNumericLeadingZeros", "dropFieldIfAllNull", "inferTimestamp",
    ),
    "parquet": ("mergeSchema", "datetimeRebaseMode", "int96RebaseMode"),
    "orc": ("mergeSchema",),
}  # fmt: skip
_ALWAYS = ("basePath",)
_ONLY: dict[str, tuple[tuple[str, ...], str]] = {
    "mode": (("failfast",), "bad rows would be dropped or blanked"),
    "enabledatetimeparsingfallback": (("false",), "times in another notation would be read by other rules"),
    "samplingratio": (("1", "1.0"), "what the sample does not show would be dropped or read as another type"),
    "enforceschema": (("false",), "columns in another order would be swapped"),
    "mergeschema": (("true",), "a column that only some files have would be dropped"),
    "dropfieldifallnull": (("false",), "fields without values would be dropped"),
    "allownumericleadingzeros": (("false",), "00123 would become 123"),
    "unescapedquotehandling": (
        ("stop_at_delimiter", "stop_at_closing_quote", "back_to_delimiter", "raise_error"),
        "the rest of a value would be dropped",
    ),
}
"""Options that lose nothing with some values only: these values, and the effect of any other."""
_REASONS = {
    "comment": "a row that begins with this character would be dropped: remove comments from the files",
    "allowcomments": "a comment may hide a record, and Sluice would count it: remove comments from the files",
    "columnnameofcorruptrecord": "bad rows fail the run, and are not kept in a column",
    "pathglobfilter": "files would be left out: write a pattern in source.path",
    "recursivefilelookup": "folders are always read at any depth",
    "modifiedafter": "files would be left out by a time: source.loaded and source.path say what is loaded",
    "modifiedbefore": "files would be left out by a time: source.loaded and source.path say what is loaded",
    "ignorecorruptfiles": "a broken file would be left out",
    "ignoremissingfiles": "a missing file would be left out",
    "path": "write it as source.path",
    "paths": "write them as source.path",
}
CONF_OF_READERS = (
    "spark.sql.legacy.",
    "spark.sql.casesensitive",
    "spark.sql.columnnameofcorruptrecord",
    "spark.sql.csv.",
    "spark.sql.json.",
    "spark.sql.files.ignore",
    "spark.hadoop.mapreduce.input.",
    "spark.hadoop.textinputformat.",
)
"""Prefixes, in lower case, of Spark settings that make the readers of the built-in job lose rows or fields."""


def check_options(options: Mapping[str, str], format: str | None) -> None:
    """Make sure that reader options lose nothing.

    Args:
        format: the format of the files; None if only their names show it.

    Raises:
        InvalidPipeline: an option loses data, or may lose it.
    """
    allowed = [*_ALWAYS, *(name for each in ([format] if format else _ALLOWED) for name in _ALLOWED[each])]
    known = {name.lower(): name for name in allowed}
    seen: set[str] = set()
    for key, value in options.items():
        lower = key.lower()
        if lower in seen:
            raise InvalidPipeline(f"the option {key} occurs twice: Spark does not distinguish capital letters")
        seen.add(lower)
        if lower not in known:
            why = _REASONS.get(lower) or f"it is not one of {', '.join(sorted(set(allowed), key=str.lower))}"
            raise InvalidPipeline(f"the reader option {key} cannot be set: {why}{suggestion(key, allowed)}")
        values, why = _ONLY.get(lower, ((), ""))
        if values and value.lower() not in values:
            raise InvalidPipeline(f"the reader option {key}: {value} cannot be set: {why}; leave it out")
        if lower in ENCODING_OPTIONS and (problem := encoding_problem(value)):
            raise InvalidPipeline(f"the reader option {key}: {value[:100]!r} cannot be set: {problem}")
    check_notation({key.lower(): value for key, value in options.items()})


def with_spark_encoding(options: Mapping[str, str]) -> dict[str, str]:
    """Return options with Spark's name of the encoding: `latin1` is ISO-8859-1 there."""
    return {key: spark_encoding(value) if key.lower() in ENCODING_OPTIONS else value for key, value in options.items()}

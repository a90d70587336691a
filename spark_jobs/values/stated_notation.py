"""Read text in the notation that options of Spark's reader state: patterns and zones of times, and a locale.

With these options, Spark's readers change values without an error: the time of a DATE is cut, `1.5` is 15 in German
notation, and a time that the zone's clocks skip moves by an hour.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    TimestampNTZType,
    TimestampType,
)

from sluice.errors import InvalidInput
from sluice.pipeline.time_patterns import PATTERN_OPTIONS
from sluice.pipeline.value_notation import states_zone

_LOCALIZED = (DecimalType, DoubleType, FloatType)
"""Types whose notation a locale states."""
_POINTS, _GROUPS = (".", ",", "\u066b"), (".", ",", "'", "\u2019", "\u00a0", "\u202f", " ", "\u066c")
_SEPARATOR = "\x01"
"""A separator that no value contains: a value with such a character is refused."""
_CONTROL = "[\\x00-\\x1f\\x7f\\x85\\u2028\\u2029]"
_NO_OFFSET = r"^\d{4}-\d{2}-\d{2}([T ][\d:.]+)?\z"


@dataclass(frozen=True)
class Numbers:
    """The notation of numbers in a locale."""

    locale: str
    """Tag of the locale, such as `de-DE`."""
    point: str
    """Character before the fraction."""
    group: str
    """Character between groups of three digits."""

    def plain(self, text: Column) -> Column:
        """Return a number with a point and without groups. Any other text becomes one that is no number."""
        group, point = re.escape(self.group), re.escape(self.point)
        pattern = rf"^[+-]?([0-9]{{1,3}}({group}[0-9]{{3}})+|[0-9]*)({point}[0-9]*)?\z"
        digits = F.replace(F.replace(text, F.lit(self.group), F.lit("")), F.lit(self.point), F.lit("."))
        return F.when(text.rlike(pattern), digits).otherwise(F.concat(F.lit("?"), text))


@dataclass(frozen=True)
class StatedNotation:
    """The notation of values that the options of a source state."""

    options: Mapping[str, str] = field(default_factory=dict)
    """The options that state it: `locale`, `timeZone` and the patterns, spelled as here."""
    numbers: Numbers | None = None

    @classmethod
    def of(cls, spark: SparkSession, options: Mapping[str, str], *, is_csv: bool) -> "StatedNotation":
        """Return the notation that reader options state. Only in CSV does a locale state the notation of numbers.

        Raises:
            InvalidInput: the locale's notation of numbers is unknown.
        """
        lower = {name.lower(): value for name, value in options.items()}
        names = ("locale", "timeZone", *PATTERN_OPTIONS)
        stated = {name: lower[name.lower()] for name in names if name.lower() in lower}
        has_numbers = is_csv and "locale" in stated
        return cls(stated, _numbers_of(spark, stated["locale"]) if has_numbers else None)

    def describe(self, type: DataType) -> str:
        """Return the notation of a type's values as text, such as ` in the notation of de-DE`; empty if it is plain."""
        if self.numbers and isinstance(type, _LOCALIZED):
            return f" in the notation of {self.numbers.locale}"
        pattern = _pattern_option(type)
        used = [pattern, *(["timeZone"] if isinstance(type, TimestampType) else [])]
        used += ["locale"] if pattern in self.options else []
        stated = [f"{name} {self.options[name]}" for name in used if name in self.options]
        return f" in {', '.join(stated)}" if stated else ""

    def plain_number(self, text: Column, type: DataType) -> Column:
        """Return the text of a number in plain notation, if a locale states the notation of the type's values."""
        return self.numbers.plain(text) if self.numbers and isinstance(type, _LOCALIZED) else text

    def states(self, type: DataType) -> bool:
        """Return True if options state the notation of a type's values, so that `value` reads them."""
        return _pattern_option(type) in self.options or (isinstance(type, TimestampType) and "timeZone" in self.options)

    def value(self, text: Column, type: DataType, plain: Column) -> Column:
        """Return the value that a text states in this notation; NULL if it states none exactly.

        Args:
            plain: the value that the text states in plain notation; NULL if it states none.
        """
        pattern = self.options.get(_pattern_option(type))
        if pattern is None:
            is_local = text.rlike(_NO_OFFSET)
            return F.when(is_local, self._in_zone(plain)).otherwise(plain)
        moment = self._parsed(text, pattern)
        if isinstance(type, DateType):
            return once(moment, lambda each: F.when(each == F.date_trunc("day", each), each.cast(type)))
        if isinstance(type, TimestampType) and not states_zone(pattern):
            return self._in_zone(moment)
        return moment.cast(type)

    def _in_zone(self, local: Column) -> Column:
        """Return the moment at which the zone's clocks show a time; NULL if they skip it. Without a zone, it is UTC.

        Args:
            local: that time, as if it were UTC, the zone of the session.
        """
        zone = self.options.get("timeZone")
        if zone is None:
            return local

        def moment_of(local: Column) -> Column:
            moment = F.to_utc_timestamp(local, zone)
            return F.when(F.from_utc_timestamp(moment, zone) == local, moment)

        return once(local, moment_of)

    def _parsed(self, text: Column, pattern: str) -> Column:
        """Return the moment that a text states; NULL if it is not in the pattern. Without a zone, it is in UTC.

        The result is a TIMESTAMP for every type: only for this one does Spark read the names of months by the locale.
        Of Spark's functions, only the CSV reader knows a locale, and it takes longer.
        """
        if "locale" not in self.options:
            return F.try_to_timestamp(text, F.lit(pattern))
        read = _read(text, "TIMESTAMP", {"timestampFormat": pattern, "locale": self.options["locale"]})
        return F.when(~text.rlike(_CONTROL), read)


def once(value: Column, use: Callable[[Column], Column]) -> Column:
    """Return an expression that uses a value several times, but computes it only once."""
    return F.get(F.transform(F.array(value), use), 0)


AS_USUAL = StatedNotation()
"""No option states a notation."""


def _pattern_option(type: DataType) -> str:
    """Return the option that states the pattern of a type's values; empty if there is none."""
    options = zip((DateType, TimestampType, TimestampNTZType), PATTERN_OPTIONS, strict=True)
    return next((name for each, name in options if isinstance(type, each)), "")


def _read(text: Column, type: str, options: Mapping[str, str]) -> Column:
    """Return the value that Spark's CSV reader reads from a text; NULL if it reads none."""
    whole = {"sep": _SEPARATOR, "quote": "", "mode": "PERMISSIVE"}
    return F.from_csv(text, f"value {type}", {**options, **whole}).getField("value")


def _numbers_of(spark: SparkSession, locale: str) -> Numbers:
    """Return a locale's decimal point and separator of groups, as Spark's reader knows them."""

    def reads(text: str, number: str) -> Column:
        read = _read(F.lit(text), "DECIMAL(10,2)", {"locale": locale})
        return F.coalesce(read == F.lit(number).cast(DecimalType(10, 2)), F.lit(False))

    conditions = [
        F.array(*[reads(f"1{point}5", "1.5") for point in _POINTS]),
        F.array(*[reads(f"1{group}234", "1234") for group in _GROUPS]),
    ]
    (row,) = spark.range(1).select(*conditions).collect()
    points = [point for point, is_known in zip(_POINTS, row[0], strict=True) if is_known]
    groups = [group for group, is_known in zip(_GROUPS, row[1], strict=True) if is_known]
    if points and groups:
        return Numbers(locale, points[0], groups[0])
    raise InvalidInput(
        f"source.options.locale: the notation of numbers in {locale!r} is unknown: write a tag such as de-DE or en-US, "
        "or leave the option out and read the columns as STRING"
    )

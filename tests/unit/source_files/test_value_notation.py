"""Options that state the notation of values: patterns that state a value completely."""

import pytest

from sluice.errors import InvalidPipeline
from sluice.pipeline.source_options import check_options


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        ("dateFormat", "YYYY-MM-dd", "write y for the year"),
        ("dateFormat", "uuuu-MM-dd", "write y for the year"),
        ("dateFormat", "yyyy-mm-dd", "has no month, so Spark would complete each value; mm are minutes"),
        ("dateFormat", "dd.MM.", "has no year"),
        ("dateFormat", "yyyy-MM-dd XXX", "use timestampFormat and the type TIMESTAMP"),
        ("dateFormat", "EEE dd.MM.yyyy", "does not read E"),
        ("dateFormat", "tt.MM.jjjj", "t has no meaning"),
        ("dateFormat", "yyyy-MM-ddd", "ddd is too long"),
        ("dateFormat", "yyyy-MM-dd'T", "a quote is not closed"),
        ("dateFormat", "yyyy-MM-dd] [", "] closes no ["),
        ("dateFormat", "'date'", "has no year"),
        ("dateFormat", "", "it is empty"),
        ("timestampFormat", "HH:mm", "has no year"),
        ("timestampFormat", "yyyy-MM-dd ss", "has no hour"),
        ("timestampFormat", "yyyy-MM-dd HH:mm.SSS", "has no second"),
        ("timestampFormat", "yyyy-MM-dd hh:mm", "without AM or PM"),
        ("timestampFormat", "yyyy-MM-dd HH:mm:ss.SSSSSSSSS", "more than six S"),
        ("timestampNTZFormat", "yyyy-MM-dd HH:mmZ", "use timestampFormat"),
        ("timeZone", "Europe/Berln", "(did you mean 'Europe/Berlin'?)"),
        ("timeZone", "+2", "is not a valid time zone"),
        ("locale", "de_DE", "write it as in de-DE"),
        ("locale", "german", "write it as in de-DE"),
        ("enableDateTimeParsingFallback", "true", "other rules"),
    ],
)
def test_a_notation_that_does_not_state_a_value_is_refused(option: str, value: str, problem: str) -> None:
    with pytest.raises(InvalidPipeline) as refused:
        check_options({option: value}, "csv")
    assert problem in str(refused.value) and option in str(refused.value)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("dateFormat", "dd.MM.yyyy"),
        ("dateFormat", "M/d/yy H:mm"),
        ("dateFormat", "yyyyDDD"),
        ("dateFormat", "yyyy"),
        ("dateFormat", "'day' d 'of' MMMM yyyy"),
        ("timestampFormat", "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS][XXX]"),
        ("timestampFormat", "d/M/y h:mm a"),
        ("timeZone", "UTC"),
        ("timeZone", "America/New_York"),
        ("timeZone", "-03:30"),
        ("locale", "de"),
        ("locale", "zh-Hant-TW"),
        ("locale", "es-419"),
    ],
)
def test_a_notation_that_states_each_value_is_accepted(option: str, value: str) -> None:
    for format in ("csv", "json", None):
        check_options({option: value}, format)


@pytest.mark.parametrize("pattern", ["yyyy-MM-dd HH:mm z", "yyyy-MM-dd HH:mm:ss[ zzzz]"])
def test_names_of_zones_that_stand_for_several_are_refused(pattern: str) -> None:
    with pytest.raises(InvalidPipeline, match="stand for several zones and for summer time: write XXX for offsets"):
        check_options({"timestampFormat": pattern}, "csv")
    check_options({"timestampFormat": "yyyy-MM-dd 'z' HH:mm VV"}, "csv")


def test_an_optional_zone_beside_a_stated_zone_is_refused() -> None:
    with pytest.raises(InvalidPipeline, match="optional time zone, which timeZone does not replace"):
        check_options({"timestampFormat": "yyyy-MM-dd HH:mm[XXX]", "timezone": "Europe/Berlin"}, "csv")

"""Texts of values, and an independent conversion in Python: the exact value that a text states, or None."""

import math
import random
import re
import struct
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_DOWN, ROUND_HALF_UP, Context, Decimal, InvalidOperation

NUMBER_OF_TEXTS = 4_000
_EXACT = Context(prec=2_000)
_LEAST_FLOAT = 2.0**-126
_LEAST_DOUBLE = Decimal("4.9e-324")
"""The smallest DOUBLE as Java writes it. Python writes 5e-324."""
_FIRST_WHOLE = 2.0**53
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d)(?:\.(\d+))?)?(Z|[+-]\d\d(?::\d\d)?)?)?", re.ASCII)
_NOT_FINITE = ("NaN", "Inf", "+Inf", "-Inf", "Infinity", "+Infinity", "-Infinity")


def decimal_of(text: str) -> Decimal | None:
    """Return the number that a text states, or None."""
    try:
        return Decimal(text) if _NUMBER.fullmatch(text) else None
    except InvalidOperation:
        return None


def as_decimal(text: str, precision: int, scale: int) -> Decimal | None:
    """Return the number if a decimal of this type represents it exactly, else None."""
    number = decimal_of(text)
    if number is None or abs(number) >= Decimal(10) ** (precision - scale):
        return None
    scaled = number.scaleb(scale, _EXACT)
    return number if scaled == scaled.to_integral_value() else None


def as_double(text: str) -> float | None:
    """Return the number if its digits identify a DOUBLE or are those of a large whole number, rounded; else None."""
    number = decimal_of(text)
    if text in _NOT_FINITE or number is None:
        return float(text) if text in _NOT_FINITE else None
    value = float(text)
    if not math.isfinite(value):
        return None
    digits = len(number.normalize(_EXACT).as_tuple().digits)
    roundings = [Context(prec=digits, rounding=each) for each in (ROUND_HALF_UP, ROUND_HALF_DOWN)]
    is_whole = _FIRST_WHOLE <= abs(value) < 2**63
    is_rounded = is_whole and number in [each.create_decimal(Decimal(value)) for each in roundings]
    return value if is_rounded or abs(number) == _LEAST_DOUBLE or Decimal(repr(value)) == number else None


def as_float(text: str) -> float | None:
    """Return the number if a FLOAT with as many digits is written so: nine at most, or all of them; else None."""
    number = decimal_of(text)
    if text in _NOT_FINITE or number is None:
        return float(text) if text in _NOT_FINITE else None
    try:
        value: float = struct.unpack("f", struct.pack("f", float(text)))[0]
    except OverflowError:
        return None
    digits = len(number.normalize(_EXACT).as_tuple().digits)
    rounded = Context(prec=digits, rounding=ROUND_HALF_UP).create_decimal(Decimal(value))
    is_short = digits <= 9 and rounded == number and (digits > 6 or abs(value) >= _LEAST_FLOAT or value == 0)
    return value if is_short or (Decimal(value) == number or float(text) == value == as_double(text)) else None


def as_moment(text: str, *, zone: bool) -> datetime | None:
    """Return the point in time that a text states exactly, or None. Without a zone, it is in UTC."""
    match = _MOMENT.fullmatch(text)
    if match is None or (match[5] and (not zone or not match[3])) or len((match[4] or "").rstrip("0")) > 6:
        return None
    fraction = (match[4] or "").rstrip("0").ljust(6, "0")
    offset = (match[5] or "Z").replace("Z", "+00:00")
    offset = offset if ":" in offset else f"{offset}:00"
    if int(offset[1:3]) > 18 or int(offset[4:]) > 59 or (offset[1:3] == "18" and offset[4:] != "00"):
        return None
    try:
        local = datetime.fromisoformat(f"{match[1]}T{match[2] or '00:00'}:{match[3] or '00'}.{fraction}")
        delta = timedelta(hours=int(offset[1:3]), minutes=int(offset[4:]))
        return (local + delta if offset[0] == "-" else local - delta) if zone else local
    except (ValueError, OverflowError):
        return None


def as_day(text: str) -> date | None:
    """Return the day that a text states without a time other than midnight, or None."""
    moment = as_moment(text, zone=False)
    return moment.date() if moment and moment.time() == datetime.min.time() else None


def as_whole(text: str, bits: int) -> int | None:
    """Return the whole number that a text states in digits, if a type of so many bits stores it, else None."""
    number = int(text) if re.fullmatch(r"[+-]?\d+", text, re.ASCII) else None
    return number if number is not None and -(2 ** (bits - 1)) <= number < 2 ** (bits - 1) else None


_ONCE_WRONG = ("1e23", "-.01e25", "1.00185758066805261e+18", "-5.240401502103003100e18", "+7721622362065163e2")
_LEAST = ("4.9E-324", "+49.0E-325")
"""Numbers that Java writes with other digits than Python: large ones, and the smallest."""


_CHANGED = 0.3
"""Share of the generated moments that have one wrong character."""


def texts(draw: random.Random) -> list[str]:
    """Return random texts: values of several types, near misses, and others."""
    return [
        *_ONCE_WRONG,
        *_LEAST,
        *(draw.choice((_number, _double, _moment, _almost))(draw) for _ in range(NUMBER_OF_TEXTS)),
    ]


def _number(draw: random.Random) -> str:
    whole = "".join(draw.choices("0123456789", k=draw.choice((0, 1, 2, 5, 8, 9, 16, 20, 21))))
    fraction = "".join(draw.choices("0012345", k=draw.choice((0, 0, 1, 2, 3, 15, 18, 19))))
    fraction += "0" * draw.choice((0, 0, 3, 30))
    point = "." if fraction or draw.random() < 0.1 else ""
    exponent = draw.choice(("", "", "", "", f"e{draw.randrange(-30, 30)}", f"E{draw.randrange(-400, 400)}"))
    return draw.choice(("", "", "-", "+")) + whole + point + fraction + exponent


def _double(draw: random.Random) -> str:
    value: float = struct.unpack("d", struct.pack("Q", draw.getrandbits(64)))[0]
    short: float = struct.unpack("f", struct.pack("I", draw.getrandbits(32)))[0]
    simple = draw.uniform(-1000, 1000)
    shown = draw.choice((repr(value), repr(simple), f"{simple:.17g}", f"{simple:.16g}", f"{value:.18g}"))
    return draw.choice((shown, shown, f"{short:.9g}", f"{short:.7g}"))


def _moment(draw: random.Random) -> str:
    day = f"{draw.randrange(1600, 2200):04}-{draw.randrange(1, 14):02}-{draw.randrange(1, 33):02}"
    clock = f"{draw.randrange(25):02}:{draw.randrange(61):02}"
    seconds = f":{draw.randrange(61):02}" + draw.choice(
        ("", "", ".", ".5", ".123456", ".123456000", ".123456789", ".000")
    )
    zone = draw.choice(("", "", "", "Z", "+02:00", "-05:30", "+02", "+0200", " UTC", "+19:00", "z"))
    time = draw.choice((clock + seconds, clock, clock + seconds, "00:00", "00:00:00", "00:00:00.000"))
    moment = draw.choice((day, day + draw.choice("T ") + time, day + draw.choice("T ") + time + zone, clock, day[:7]))
    return _changed(draw, moment) if draw.random() < _CHANGED else moment


def _changed(draw: random.Random, text: str) -> str:
    """Return a text with one character removed, replaced or added."""
    at = draw.randrange(len(text))
    return text[:at] + draw.choice(("", " ", "0", "5", "Z", "+", ":")) + text[at + draw.randrange(2) :]


def _almost(draw: random.Random) -> str:
    odd = ["12d", "12f", "0x1p3", "1E5", "1_000", "1,5", "12,50", " 5", "5 ", " ", "\t", "10:30", "2024", "2024-1-5"]
    odd += [
        "١٢",
        "NaN",
        "nan",
        "Infinity",
        "inf",
        "-inf",
        "+Inf",
        "null",
        "today",
        "now",
        "epoch",
        "+",
        "-",
        ".",
    ]
    odd += ["9007199254740993", "9007199254740992", "16777217", "1e400", "1e-400", "3e-324", "-0", "-0.0", "00123"]
    odd += ["127", "128", "200", "255", "-128", "-129"]
    odd += ["2024-02-30", "2023-02-29", "10000-01-01", "2024-01-05T", "2024-01-05 24:00:00", "1e", "e5"]
    odd += ["12.5\n", "2024-01-05\n", "\n", "2024-01-05 10:30:00\n", "1e2\n"]
    return draw.choice(odd)

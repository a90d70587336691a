r"""Translate regular expressions from Java's syntax (Spark) to RE2's (DuckDB), if the meaning stays the same.

Java's syntax defines the meaning of a check. A pattern from the subset below is rewritten for RE2 so that it matches
the same strings; any other is left to Spark. The syntaxes differ, by the documentation of `java.util.regex.Pattern`
and the syntax page of RE2: Java's `.` leaves out five line ends, RE2's one; Java's `$` also matches before a
last line end; `\s` includes the vertical tab in Java only; look-around, back-references, possessive quantifiers,
word boundaries, Unicode classes and flags exist in one of them or differ.
"""

import re
import warnings

_DOT = r"[^\n\r\x{85}\x{2028}\x{2029}]"
LINE_END = r"(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])\z"
"""In RE2's syntax: the last line end of a string."""
_SPACE = r"\t\n\x0B\f\r "
_MOST = 1000  # RE2 repeats no oftener

_TOKEN = re.compile(
    r"""(?P<class>\[\^?(?:\\[dws\\\]\[^.\-/+*?(){}|$@'"_ ]|[^\\\[\]&])+\])
      | (?P<group>\((?:\?:)?(?!\?))
      | (?P<close>\))
      | (?P<quantifier>(?:[*+?]|\{\d{1,4}(?:,\d{0,4})?\})\??(?![+*?{]))
      | (?P<escape>\\[dDwWs.\\\[\](){}|*+?^$\-/@'"_])
      | (?P<dot>\.) | (?P<start>\^) | (?P<or>\|)
      | (?P<literal>[^\\\[\](){}.*+?^$|])
    """,
    re.X | re.S,
)
_WRONG_EVERYWHERE = (
    "unterminated character set",
    "missing )",
    "unbalanced parenthesis",
    "nothing to repeat",
    "min repeat",
)


def problem(pattern: str) -> str | None:
    """Return why a pattern is wrong in every dialect, or None where only Spark could tell."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            re.compile(pattern)
        except re.error as error:
            if str(error.msg).startswith(_WRONG_EVERYWHERE):
                return f"{pattern!r} is no regular expression: {error.msg}"
    return None


def for_re2(pattern: str) -> tuple[str, bool] | None:
    """Return the pattern for RE2, and whether it ended in `$`; None if it is not certain to mean the same.

    Where it ended in `$`, the returned pattern ends at the end of the text, and must be tried on the text and
    on the text without its last line end: nowhere else does Java's `$` match.
    """
    body, ends = (pattern[:-1], True) if re.search(r"(?<!\\)(?:\\\\)*\$\Z", pattern) else (pattern, False)
    written: list[str] = []
    position = depth = 0
    while position < len(body):
        token = _TOKEN.match(body, position)
        if token is None:
            return None
        position, kind = token.end(), str(token.lastgroup)
        depth += (kind == "group") - (kind == "close")
        translated = _translated(kind, token.group())
        if translated is None or depth < 0 or (kind == "or" and depth == 0 and ends):
            return None
        written.append(translated)
    if depth:
        return None
    return "".join(written) + (r"\z" if ends else ""), ends


def _translated(kind: str, text: str) -> str | None:
    if kind == "dot":
        return _DOT
    if kind == "escape":
        return f"[{_SPACE}]" if text == "\\s" else text
    if kind == "class":
        body = text[1:-1]
        if not _plain_class(body.removeprefix("^")):
            return None
        return f"[{body.replace(chr(92) + 's', _SPACE)}]"
    if kind == "quantifier" and text.startswith("{"):
        numbers = [int(each) for each in re.findall(r"\d+", text)]
        return text if max(numbers) <= _MOST and numbers == sorted(numbers) else None
    return text


def _plain_class(body: str) -> bool:
    """Whether a class has no range between classes, which the two read differently."""
    return not re.search(r"\\[dws]-.|.-\\[dws]", body)

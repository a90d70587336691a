r"""Translate regular expressions from Java's syntax (Spark) to RE2's (DuckDB), if the meaning stays the same.

Java's syntax defines the meaning of a check. A pattern from the subset below is rewritten for RE2 so that it matches
the same strings; any other is left to Spark. According to the documentation of `java.util.regex.Pattern` and RE2's
syntax page, the syntaxes differ: Java's `.` excludes five line ends, RE2's one; Java's `$` also matches before a
last line end; `\s` includes the vertical tab in Java only; look-around, back-references, possessive quantifiers,
word boundaries, Unicode classes and flags exist in only one of them or have different meanings.
"""

import re
import warnings

_DOT = r"[^\n\r\x{85}\x{2028}\x{2029}]"
LINE_END = r"(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])\z"
"""In RE2's syntax: the last line end of a string."""
_SPACE = r"\t\n\x0B\f\r "
_MOST = 1000  # RE2's maximum number of repetitions

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
    """Return the reason why a pattern is invalid in every dialect, or None if only Spark can decide."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            re.compile(pattern)
        except re.error as error:
            if str(error.msg).startswith(_WRONG_EVERYWHERE):
                return f"{pattern!r} is not a regular expression: {error.msg}"
    return None


def for_re2(pattern: str) -> tuple[str, bool] | None:
    """Return the pattern for RE2 and whether it ended in `$`, or None if the same meaning is not certain.

    If it ended in `$`, the returned pattern ends at the end of the text. Try it on the text, and on the text without
    its last line end: Java's `$` matches only in these two places.
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
    """Return True if a class has no range between classes, which Java and RE2 read differently."""
    return not re.search(r"\\[dws]-.|.-\\[dws]", body)

"""Split SQL into tokens exactly as Spark does.

sqlglot parses the SQL of a pipeline to validate it, but Spark runs the text as it is written. If the two disagreed on
the end of a string or a comment, a text could hide code from the validation. So comments are removed before either
reads the text, and each string must be a string to both. Source: `SqlBaseLexer.g4` of Spark 4.1.
"""

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["word", "name", "text", "number", "symbol"]
MAX_LENGTH = 200_000
MAX_DEPTH = 100
"""Maximum nesting depth of brackets and CASE, because parsers recurse."""
_TOKEN = re.compile(
    r"(?P<space>[ \t\r\n\f\v]+)"
    r"|(?P<comment>--(?:\\\n|[^\r\n])*)"
    r"|(?P<block>/\*(?!\+))"
    r"|(?P<text>[rR]'[^']*'|[rR]\"[^\"]*\"|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<name>`(?:[^`]|``)*`)"
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:BD|bd|[LSYDFlsydf])?(?!\w))"
    r"|(?P<word>\w+)"
    r"|(?P<symbol><=>|<>|!=|<=|>=|==|->|=>|\|\||::|>>>|/\*\+|\*/|[-+*/%=<>()\[\],.:&|^~!;])",
    re.S,
)


class SqlProblem(Exception):
    """Raised when SQL of a pipeline is refused, with the reason and the position."""


@dataclass(frozen=True)
class Token:
    """One token: its kind, its text and its start position."""

    kind: Kind
    text: str
    start: int

    @property
    def word(self) -> str:
        """The text in lower case, without the quotes of a quoted name."""
        return self.name.lower()

    @property
    def name(self) -> str:
        """The text, without the backquotes of a quoted name."""
        return self.text[1:-1].replace("``", "`") if self.kind == "name" else self.text


def position(text: str, start: int) -> str:
    """Describe a position by line and column, counted from 1: `line 2, column 5`."""
    line = text.count("\n", 0, start) + 1
    return f"line {line}, column {start - (text.rfind(chr(10), 0, start) + 1) + 1}"


def tokens(text: str) -> list[Token]:
    """Return the tokens of SQL, without comments.

    Raises:
        SqlProblem: it is too long, nests too deeply, or contains something that is not a token of SQL.
    """
    if len(text) > MAX_LENGTH:
        raise SqlProblem(f"SQL of {len(text):,} characters is too long: the limit is {MAX_LENGTH:,}")
    if (variable := text.find("${")) >= 0:
        raise SqlProblem(f"`${{` at {position(text, variable)} reads a variable: write the value itself")
    result: list[Token] = []
    start = depth = 0
    while start < len(text):
        match = _TOKEN.match(text, start)
        if not match:
            raise SqlProblem(f"{text[start : start + 12]!r} at {position(text, start)} is not SQL")
        kind = match.lastgroup
        if kind == "block":
            start = _comment_end(text, start)
            continue
        start = match.end()
        if kind in ("space", "comment"):
            continue
        token = Token(kind, match[0], match.start())  # type: ignore[arg-type]  # the names of the groups are the kinds
        depth += (token.word in ("(", "[", "case")) - (token.word in (")", "]", "end"))
        if depth > MAX_DEPTH:
            raise SqlProblem(f"{position(text, token.start)} is {depth} brackets deep: the limit is {MAX_DEPTH}")
        result.append(token)
    return result


def without_comments(text: str) -> str:
    """Return SQL without its comments. The rest keeps its line and column.

    Raises:
        SqlProblem: as `tokens` does.
    """
    kept = ["\n" if character == "\n" else " " for character in text]
    for token in tokens(text):
        kept[token.start : token.start + len(token.text)] = token.text
    return "".join(kept).rstrip()


def split_statements(text: str) -> list[str]:
    """Return the statements of a text, which semicolons separate. A semicolon in a string or a comment is text.

    Raises:
        SqlProblem: as `tokens` does.
    """
    statements, start, is_empty = [], 0, True
    for token in tokens(text):
        if token.text != ";":
            is_empty = False
            continue
        if not is_empty:
            statements.append(text[start : token.start].strip())
        start, is_empty = token.start + 1, True
    return statements if is_empty else [*statements, text[start:].strip()]


def _comment_end(text: str, start: int) -> int:
    """Return the end of a comment in brackets. Spark's comments in brackets nest."""
    depth = 0
    for match in re.finditer(r"/\*|\*/", text[start:]):
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return start + match.end()
    raise SqlProblem(f"the comment at {position(text, start)} does not end")

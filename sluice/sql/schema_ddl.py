"""Validate the column list of `source.schema`: names, types, NOT NULL and comments, and no expression.

Spark would evaluate an expression after DEFAULT or GENERATED ALWAYS AS, and a table created from the rows would keep
it. The grammar below lists what is allowed. Anything else that Spark's grammar of columns accepts is refused.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from sluice.identifiers import suggestion
from sluice.sql.functions import words
from sluice.sql.tokens import MAX_DEPTH, SqlProblem, Token, position, tokens

_TYPES = words(
    """
    bigint binary boolean byte date dec decimal double float int integer interval long numeric real short
    smallint string time timestamp timestamp_ltz timestamp_ntz tinyint variant void
    """
)
_OF_LENGTH = ("char", "character", "varchar")
_PLAIN_COLLATION = "utf8_binary"
"""The collation of text that states none."""
_NESTED = ("array", "map", "struct")
_INTERVALS = ("year", "month", "day", "hour", "minute", "second")
_EXPRESSIONS = ("default", "generated")
_NAME = re.compile(r"\w+")
_STORED = {
    "array": "list",
    "bigint": "long",
    "byte": "int",
    "dec": "decimal",
    "integer": "int",
    "numeric": "decimal",
    "real": "float",
    "short": "int",
    "smallint": "int",
    "timestamp": "timestamptz",
    "timestamp_ltz": "timestamptz",
    "timestamp_ntz": "timestamp",
    "tinyint": "int",
}
"""Iceberg's names of types, by Spark's names, if they differ."""


def schema_problem(text: str) -> str | None:
    """Return the reason why a text is not a list of columns and types, or None."""
    try:
        listed = [each for token in tokens(text) for each in _split(token)]
        _Columns(text, listed).check()
    except SqlProblem as problem:
        return str(problem)
    return None


def schema_columns(text: str) -> list[str]:
    """Return the names of the columns of a list that `schema_problem` accepts."""
    return _read(text).names


def schema_types(text: str) -> dict[str, str]:
    """Return the types of the columns of such a list, as it states them."""
    columns = _read(text)
    return dict(zip(columns.names, columns.types, strict=True))


def stored_type(type: str) -> str:
    """Return the Iceberg type in which a table stores the values of a type of Spark SQL."""
    name = _NAME.match(type)
    plain = name[0].lower() if name else ""
    return plain if plain == "string" else _STORED.get(plain, plain) + type[len(plain) :]


def _read(text: str) -> "_Columns":
    columns = _Columns(text, [each for token in tokens(text) for each in _split(token)])
    columns.check()
    return columns


def _split(token: Token) -> list[Token]:
    """Split `>>>` and `<>` into the single brackets that they are in types."""
    if token.kind != "symbol" or token.text not in (">>>", "<>"):
        return [token]
    return [Token("symbol", each, token.start + offset) for offset, each in enumerate(token.text)]


@dataclass
class _Columns:
    """Parser of a column list, which reads one token after the other."""

    text: str
    listed: Sequence[Token]
    at: int = 0
    depth: int = 0
    names: list[str] = field(default_factory=list)
    """Columns read so far, without fields of structs."""
    types: list[str] = field(default_factory=list)
    """Their types."""

    def check(self) -> None:
        """Read the list to its end.

        Raises:
            SqlProblem: it is not a list of columns.
        """
        if not self.listed:
            raise SqlProblem("it is empty")
        self._columns()
        if self.at < len(self.listed):
            raise self._unexpected("`,`")

    def _columns(self) -> None:
        self._column()
        while self._takes(","):
            self._column()

    def _column(self) -> None:
        if self._next is None or self._next.kind not in ("word", "name"):
            raise self._unexpected("the name of a column")
        if not self.depth:
            self.names.append(self._next.name)
        self.at += 1
        self._takes(":")
        first = self.at
        self._type()
        if not self.depth:
            self.types.append(self._text(first))
        if self._takes("not") and not self._takes("null"):
            raise self._unexpected("NULL")
        if self._takes("comment"):
            if not self._takes_text():
                raise self._unexpected("the text of the comment")
            while self._takes_text():  # adjacent texts form one, as in 'it''s'
                pass

    def _text(self, first: int) -> str:
        """Return the text of the tokens from one of them to the last that was read."""
        last = self.listed[self.at - 1]
        return self.text[self.listed[first].start : last.start + len(last.text)]

    def _type(self) -> None:
        token = self._next
        if token is None or token.kind != "word":
            raise self._unexpected("a type")
        name = token.word
        if name in _OF_LENGTH:
            raise SqlProblem(
                f"{token.text.upper()} at {position(self.text, token.start)} states the length of a text, which no "
                "table keeps: write STRING, and add the check string_length"
            )
        if name not in (*_TYPES, *_NESTED):
            where = position(self.text, token.start)
            raise SqlProblem(f"{token.text!r} at {where} is not a type{suggestion(name, [*_TYPES, *_NESTED])}")
        self.at += 1
        if name in _NESTED:
            self._nested(name)
        elif name == "interval":
            self._interval()
        elif self._takes("("):
            self._number()
            while self._takes(","):
                self._number()
            self._needs(")")
        elif name == "string" and self._is("collate"):
            self._collation()

    def _collation(self) -> None:
        """Read COLLATE and the name of a collation, which must be that of all text."""
        where = position(self.text, self.listed[self.at].start)
        name = ""
        while not name or self._is("."):
            self.at += 1
            if self._next is None or self._next.kind not in ("word", "name"):
                raise self._unexpected("the name of a collation")
            name += ("." if name else "") + self._next.name
            self.at += 1
        if name.lower() != _PLAIN_COLLATION:
            raise SqlProblem(
                f"COLLATE at {where} states the collation {name}, which no table keeps: write STRING, and compare with "
                "lower() or COLLATE in queries and transforms"
            )

    def _nested(self, name: str) -> None:
        self._needs("<")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise SqlProblem(f"its types nest more than {MAX_DEPTH} deep, which is the limit")
        if name == "struct":
            if not self._is(">"):
                self._columns()
        else:
            self._type()
        if name == "map":
            self._needs(",")
            self._type()
        self._needs(">")
        self.depth -= 1

    def _interval(self) -> None:
        if self._next and self._next.word in _INTERVALS:
            self.at += 1
            if self._takes("to"):
                if not (self._next and self._next.word in _INTERVALS):
                    raise self._unexpected(f"one of {', '.join(_INTERVALS)}")
                self.at += 1

    def _number(self) -> None:
        if self._next is None or not self._next.text.isdigit():
            raise self._unexpected("a number")
        self.at += 1

    @property
    def _next(self) -> Token | None:
        return self.listed[self.at] if self.at < len(self.listed) else None

    def _is(self, word: str) -> bool:
        token = self._next
        return token is not None and token.kind in ("word", "symbol") and token.word == word

    def _takes(self, word: str) -> bool:
        is_it = self._is(word)
        self.at += is_it
        return is_it

    def _takes_text(self) -> bool:
        token = self._next
        is_text = token is not None and token.kind == "text"
        self.at += is_text
        return is_text

    def _needs(self, word: str) -> None:
        if not self._takes(word):
            raise self._unexpected(f"`{word}`")

    def _unexpected(self, wanted: str) -> SqlProblem:
        token = self._next
        if token is None:
            return SqlProblem(f"it ends where {wanted} should be")
        where = position(self.text, token.start)
        if token.kind == "word" and token.word in _EXPRESSIONS:
            return SqlProblem(
                f"{token.text.upper()} at {where} is an expression that Spark would run: a schema takes names, types, "
                "NOT NULL and COMMENT; compute values in write.transform"
            )
        return SqlProblem(f"{token.text!r} at {where} is not part of a schema: {wanted} should be there")

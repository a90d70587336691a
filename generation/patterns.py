"""Strings that match a pattern: a regular expression in Java's syntax, a LIKE pattern, or a named format."""

import re
import string
import uuid
from random import Random

_MORE = 4
"""Maximum number of repetitions beyond the minimum of a quantifier."""
_CLASSES = {
    "d": string.digits,
    "w": string.ascii_letters + string.digits + "_",
    "s": " ",
    "D": string.ascii_letters,
    "W": " -",
    "S": string.ascii_letters + string.digits,
}
_PRINTABLE = string.ascii_letters + string.digits + " _-.,:;@#/+"
_QUANTIFIER = re.compile(r"(?:[*+?]|\{(\d+)(,(\d*))?\})[?+]?")
_GROUP = re.compile(r"\((?:\?:|\?<\w+>|\?i\))?")


def matching_regex(pattern: str, random: Random) -> str | None:
    """Return a string that should match a regular expression, or None if the pattern has an unsupported part.

    Look-arounds and back-references are not supported. An engine decides whether the string really matches.
    """
    maker = _Regex(pattern, random)
    try:
        text = maker.alternatives()
    except (_Unknown, IndexError, RecursionError):
        return None
    return text if maker.at == len(pattern) else None


class _Unknown(Exception):
    """Raised for a part of a pattern that is not supported."""


class _Regex:
    """Generator of a text that follows one path through a regular expression, from left to right."""

    def __init__(self, pattern: str, random: Random) -> None:
        self.pattern, self.random, self.at = pattern, random, 0

    def alternatives(self) -> str:
        texts = [self._sequence()]
        while self._peek() == "|":
            self.at += 1
            texts.append(self._sequence())
        return self.random.choice(texts)

    def _sequence(self) -> str:
        parts = []
        while self._peek() not in ("", "|", ")"):
            start = self.at
            part = self._atom()
            quantifier = _QUANTIFIER.match(self.pattern, self.at)
            if quantifier:
                part = self._repeated(start, quantifier)
            parts.append(part)
        return "".join(parts)

    def _repeated(self, start: int, quantifier: re.Match[str]) -> str:
        """Return the atom that begins at `start`, repeated as often as its quantifier allows."""
        times = self._times(quantifier)
        parts = []
        for _ in range(times):
            self.at = start
            parts.append(self._atom())
        self.at = quantifier.end()
        return "".join(parts)

    def _times(self, quantifier: re.Match[str]) -> int:
        sign = quantifier.group()[0]
        if sign != "{":
            low = 1 if sign == "+" else 0
            return self.random.randint(low, 1 if sign == "?" else low + _MORE)
        least = int(quantifier[1])
        if quantifier[2] is None:
            return least
        return self.random.randint(least, int(quantifier[3]) if quantifier[3] else least + _MORE)

    def _atom(self) -> str:
        character = self.pattern[self.at]
        if character == "(":
            return self._group()
        self.at += 1
        if character == "[":
            return self.random.choice(self._members())
        if character == "\\":
            return self._escape()
        if character in "^$":
            return ""
        return self.random.choice(string.ascii_lowercase) if character == "." else character

    def _group(self) -> str:
        opened = _GROUP.match(self.pattern, self.at)
        assert opened is not None
        self.at = opened.end()
        if opened.group() == "(?i)":
            return ""
        if self._peek() == "?":
            raise _Unknown
        text = self.alternatives()
        if self._peek() != ")":
            raise _Unknown
        self.at += 1
        return text

    def _escape(self) -> str:
        character = self.pattern[self.at]
        self.at += 1
        if character in _CLASSES:
            return self.random.choice(_CLASSES[character])
        if character in "bBAzZ":
            return ""
        if character.isalnum():
            raise _Unknown
        return character

    def _members(self) -> str:
        """Return the characters of a class whose opening bracket has been read."""
        negated = self._peek() == "^"
        self.at += negated
        members = ""
        while self._peek() != "]":
            first = self._member()
            if self._peek() == "-" and self.pattern[self.at + 1] != "]" and len(first) == 1:
                self.at += 1
                last = self._member()
                first = "".join(map(chr, range(ord(first), ord(last) + 1)))
            members += first
        self.at += 1
        chosen = "".join(each for each in _PRINTABLE if each not in members) if negated else members
        if not chosen:
            raise _Unknown
        return chosen

    def _member(self) -> str:
        character = self.pattern[self.at]
        self.at += 1
        if character == "[":
            raise _Unknown
        if character != "\\":
            return character
        escaped = self.pattern[self.at]
        self.at += 1
        if escaped in _CLASSES:
            return _CLASSES[escaped]
        if escaped.isalnum():
            raise _Unknown
        return escaped

    def _peek(self) -> str:
        return self.pattern[self.at : self.at + 1]


def matching_like(pattern: str, random: Random) -> str:
    """Return a string that matches a LIKE pattern."""
    made, escaped = "", False
    for character in pattern:
        if escaped or character not in "%_\\":
            made, escaped = made + character, False
        elif character == "\\":
            escaped = True
        else:
            made += random_word(random, 1 if character == "_" else random.randint(0, _MORE))
    return made


def formatted(name: str, random: Random) -> str:
    """Return a string in one of the formats of the check `valid_format`."""
    if name == "email":
        return f"{random_word(random, 6)}.{random_word(random, 4)}@{random_word(random, 7)}.example"
    if name == "url":
        return f"https://{random_word(random, 8)}.example/{random_word(random, 5)}"
    if name == "uuid":
        return str(uuid.UUID(int=random.getrandbits(128), version=4))
    if name == "date":
        return f"{random.randint(2000, 2030):04}-{random.randint(1, 12):02}-{random.randint(1, 28):02}"
    return ".".join(str(random.randint(1, 254)) for _ in range(4))


def random_word(random: Random, length: int) -> str:
    """Return a word of random lower-case letters."""
    return "".join(random.choices(string.ascii_lowercase, k=length))

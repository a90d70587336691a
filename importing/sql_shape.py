"""Find errors in SQL that its validation accepts: gaps in lists, and two comparisons side by side."""

from collections.abc import Sequence
from itertools import pairwise

from sluice.sql.tokens import SqlProblem, Token, position, tokens

_COMPARISONS = frozenset(["=", "==", "<", ">", "<=", ">=", "<>", "!=", "<=>"])
_OPENING, _CLOSING = frozenset("(["), frozenset(")]")
_STATES = frozenset(["null", "not", "true", "false", "distinct", "unknown"])
_NO_FUNCTION = frozenset(["in", "and", "or", "not", "where", "on", "when", "then", "else", "having", "by", "select"])
_ENDED = frozenset(["from", "where", "having", "group", "order", "limit"])
"""Words that end the list before them."""


def shape_problem(text: str) -> str | None:
    """Return the reason why a text is not SQL, or None if no error is found."""
    try:
        listed = tokens(text)
    except SqlProblem as problem:
        return str(problem)
    has_types = any(one.word in ("array", "map", "struct") and two.text == "<" for one, two in pairwise(listed))
    for index in range(1, len(listed)):
        before, token = listed[index - 1], listed[index]
        wrong = _is_gap(before, token) or _is_empty(listed, index) or _is_no_state(listed, index)
        if wrong or (not has_types and _are_two_comparisons(before, token)):
            return f"{token.text!r} at {position(text, token.start)} cannot follow {before.text!r}"
    return None


def _is_gap(before: Token, token: Token) -> bool:
    """Return True if a list has a gap in place of an element."""
    if token.text == ",":
        return before.text == "," or before.text in _OPENING
    if before.kind == "word" and before.word == "by":
        return token.kind == "word" and token.word in _ENDED
    ends = token.text in _CLOSING or (token.kind == "word" and token.word in _ENDED)
    return ends and (before.text == "," or (before.kind == "word" and before.word == "select"))


def _is_empty(listed: Sequence[Token], index: int) -> bool:
    """Return True if brackets that are not a call are empty."""
    if listed[index - 1].text != "(" or listed[index].text != ")":
        return False
    if index + 1 < len(listed) and listed[index + 1].text == "->":
        return False
    called = listed[index - 2] if index > 1 else None
    return called is None or called.kind not in ("word", "name") or called.text.lower() in _NO_FUNCTION


def _is_no_state(listed: Sequence[Token], index: int) -> bool:
    """Return True if the word after `is` is not a state that a value can have."""
    before = listed[index - 1]
    if before.kind != "word" or before.word != "is" or (index > 1 and listed[index - 2].text in (".", "as")):
        return False
    return listed[index].word not in _STATES


def _are_two_comparisons(before: Token, token: Token) -> bool:
    is_shift = before.text == token.text and before.text in "<>" and before.start + 1 == token.start
    return before.text in _COMPARISONS and token.text in _COMPARISONS and not is_shift

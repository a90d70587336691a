"""Tables of `docs/order.md`, generated from the rules of loading."""

from collections.abc import Callable
from typing import get_args

from sluice.pipeline.loading_rules import GUARDS, LOADED, TRAITS, Rule, Way, table

MARKS = ("<!-- rules: made by `make docs` -->", "<!-- end of rules -->")
"""Lines of the document between which the tables stand."""
_NOTES = dict(zip([guard for guard in GUARDS if guard], "abcdefgh", strict=False))


def markdown() -> str:
    """Return the rules as tables for the documents."""
    notes = [f"- **{letter}**: {GUARDS[guard]}" for guard, letter in _NOTES.items()]
    return "\n".join(
        [
            "### Order",
            "",
            *_matrix(_order),
            "",
            *notes,
            "",
            "### What counts as loaded already",
            "",
            *_matrix(lambda rule: rule.loaded or "-"),
            "",
            *(f"- **{name}**: {meaning}" for name, meaning in LOADED.items() if name),
            "",
            "### What is refused, and why",
            "",
            *_refusals(),
        ]
    )


def documented(text: str) -> str:
    """Return a document with its tables updated."""
    before, rest = text.split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    return f"{before}{MARKS[0]}\n{markdown()}\n{MARKS[1]}{after}"


def _matrix(cell: Callable[[Rule], str]) -> list[str]:
    rules = table()
    kinds = list(TRAITS)
    lines = [f"| | {' | '.join(_shown(kind) for kind in kinds)} |", f"|---|{'---|' * len(kinds)}"]
    ways: tuple[Way, ...] = get_args(Way)
    for way in ways:
        lines.append(f"| {way} | {' | '.join(cell(rules[way, kind]) for kind in kinds)} |")
    return lines


def _order(rule: Rule) -> str:
    if rule.refused:
        return "refused"
    note = f" ({_NOTES[rule.guard]})" if rule.guard else ""
    return f"{rule.order}{note}"


def _refusals() -> list[str]:
    lines = ["| started | kind of write | why |", "|---|---|---|"]
    reasons: dict[tuple[str, str], list[str]] = {}
    for (way, kind), rule in table().items():
        if rule.refused:
            reasons.setdefault((_shown(kind), rule.refused), []).append(way)
    return lines + [f"| {', '.join(ways)} | {kind} | {why} |" for (kind, why), ways in reasons.items()]


def _shown(kind: str) -> str:
    return kind if kind == "program" else f"`{kind}`"

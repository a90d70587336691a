"""The words of the code and of the documents: one standard term for each thing, and a list of words that stay out.

`docs/glossary.md` has the terms. The lists below name what each word is replaced with.
"""

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from devstack.stack import ROOT
from tests.harness.markdown import without_code

# Parts of identifiers, in snake case or camel case, with the term to use instead. An entry may have several parts.
NAMES = {
    "acts": "activities",
    "act": "activity",
    "anew": "again",
    "arena": "harness",
    "asking": "query_builder",
    "beat": "heartbeat",
    "blast": "change_scope",
    "came": "the name of the value",
    "catalogue": "catalog",
    "classic": "spark_submit, or what it is",
    "collided": "conflicted",
    "crowd": "concurrent_runs",
    "crowds": "concurrent_runs",
    "divide": "quarantine_rows",
    "divided": "quarantined",
    "division": "row quarantine",
    "door": "cli",
    "elsewhere": "external_server, or what it is",
    "facts": "statistics",
    "foresee": "find_conflicts, predict",
    "found": "the name of the value: branch, tables, result",
    "gather": "collect",
    "gone": "deleted, ended, missing",
    "heed": "raise_if_cancelled, handle",
    "hop": "local_activity",
    "hops": "local_activities",
    "insist": "last_attempt",
    "keeps_columns": "schema_is_fixed",
    "ledger": "audit_results_table",
    "looks_at": "referenced_tables",
    "may_pass": "is_retryable",
    "misfits": "problems",
    "never_began": "was_never_started",
    "objection": "verification_error, problem",
    "ours": "what it holds",
    "perhaps": "may_be_missing, or a time-out by name",
    "place": "path, position, location",
    "realm": "installation",
    "ruled": "signed decision, verified decision",
    "ruling": "decision",
    "said": "the name of the value: message, output, answer",
    "scene": "harness",
    "spare": "orphan",
    "spoken": "describe_…",
    "storm": "stress_test",
    "story": "run, steps",
    "takeover": "rebase",
    "told": "as_application_error, message",
    "turn": "merge_slot, position",
    "turns": "merge_queue",
    "went": "the name of the value",
    "whose": "owner",
    "words_of": "root_cause, describe_…",
    "world": "harness, fake activities",
}
# Identifiers that contain such a part for a reason: another package or a protocol chose them, or the word is plain.
ALLOWED_NAMES = {
    "gather",  # asyncio.gather
    "said_at",  # a key of `--json`
    "not_found", "NOT_FOUND", "HTTPNotFound", "EntityNotFoundException", "NessieNotFoundException",
    "FileNotFoundError", "ModuleNotFoundError", "PackageNotFoundError",
}  # fmt: skip

# Words and phrases that prose (docstrings, comments, messages, documents) must not use, with their replacements.
PROSE = {
    r"\bacts\b(?! (?:as|on|only)\b)|\b(?:an|the|each|every|one|any|its|their|last|first|short) act\b": "activity",
    r"\banew\b": "again",
    r"\bblast radius\b": "scope of the change",
    r"(?<!\")(?-i:\b[cC]atalogues?\b)(?!\")": "catalog",
    r"\bcame to\b": "reached",
    r"\bdivision\b|\bdivid(?:e|es|ed|ing) (?:rows|bad|off)\b": "row quarantine",
    r"\bforesee\w*|\bforesaw\b": "expect, predict, find conflicts",
    r"\bfront doors?\b": "command line",
    r"\bheed(?:s|ed)?\b": "handle, check, follow",
    r"\bhops?\b": "local activity",
    r"\bin the form in which\b": "as",
    r"\bin vain\b": "without success",
    r"\bis as good\b|\bare as good\b|\bas good as\b": "the plain statement",
    r"\bknows? no\b": "does not know, has no",
    r"\bledgers?\b": "audit results table",
    r"\bmain (?:holds?|held)\b": "main contains",
    r"\brealms?\b": "installation",
    r"\breasons? for which\b": "reason why",
    r"\bset apart\b|\bsets? \w+ (?:\w+ )?apart\b": "quarantined (rows)",
    r"\bsteps? back\b|\bstepped back\b": "waits, backs off",
    r"\b(?:takes?|took|taken|taking) over\b|\btake-?overs?\b": "rebase, rebased",
    r"\b(?:takes?|took|taken|taking) up\b": "resume, continue",
    r"\bthat there can be\b": "the plain statement",
    r"\bso that nobody\b": "the plain statement",
    r"\btell(?:s)? the story\b": "run the steps",
    r"\b(?:catalog|Nessie|server|service|store|target|Temporal|worker) (?:is|was) away\b": "is unavailable",
    r"\bwhoever\b": "the one who does it, by name",
    r"\bwhose turn\b|\btakes? turns\b|\btook turns\b": "merge queue, slot",
    r"\bwritten again\b": "rewritten",
}

# Rooms whose texts, comments and docstrings must obey the list, and so must the tests, except the lists in this file.
# The rule for the first line of a docstring applies to all rooms except the tests.
ROOMS_BY_PROSE = [
    *("sluice", "lakehouse", "engine", "spark_jobs", "workflows", "activities", "runtime", "cli", "devstack"),
    *("generation", "importing", "hosting", "web", "pipelines", "bench", "run_workflow.py", "worker.py"),
]
ROOMS_WITH_TESTS = [*ROOMS_BY_PROSE, "tests"]
DOCUMENTS_HELD = [
    str(path.relative_to(ROOT)) for path in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
]


def sources(room: str) -> list[Path]:
    path = ROOT / room
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


def identifiers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield each name that the code defines or uses, with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(asname=str(name)):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.keyword(arg=str(name)):
                yield node.lineno, name


def listed(name: str) -> list[str]:
    """Return the entries of the list that are part of an identifier in snake case or camel case."""
    snake = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()
    return [entry for entry in NAMES if f"_{entry}_" in f"_{snake}_"]


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each text and comment of a source file, or each line of a document outside of code, with its line."""
    if path.suffix == ".md":
        text = re.sub(r"`[^`\n]*`", "``", without_code(path.read_text()))
        yield from enumerate(text.splitlines(), 1)
        return
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type in (tokenize.COMMENT, tokenize.STRING) or tokenize.tok_name[token.type] == "FSTRING_MIDDLE":
                yield token.start[0], re.sub(r"`[^`\n]*`", "``", token.string)


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the first line of each docstring, with the line of its definition."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text.split("\n\n")[0]


@pytest.mark.parametrize("room", ROOMS_WITH_TESTS)
def test_no_identifier_uses_a_word_of_the_list(room: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {name}: instead of {word}, {NAMES[word]}"
        for path in sources(room)
        for line, name in identifiers(ast.parse(path.read_text()))
        if name not in ALLOWED_NAMES and not name.startswith("test_")
        for word in listed(name)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("room", [*ROOMS_WITH_TESTS, *DOCUMENTS_HELD])
def test_no_text_uses_a_phrase_of_the_list(room: str) -> None:
    files = [ROOT / room] if room.endswith(".md") else sources(room)
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {match[0]!r}: {instead}"
        for path in files
        if path != Path(__file__)
        for line, text in prose(path)
        for pattern, instead in PROSE.items()
        for match in re.finditer(pattern, text, re.I)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("room", ROOMS_BY_PROSE)
def test_a_docstring_begins_with_one_plain_sentence(room: str) -> None:
    wrong = []
    for path in sources(room):
        for line, first in docstrings(ast.parse(path.read_text())):
            sentence = first.split("\n")[0]
            if not sentence.endswith((".", ":")) or len(sentence) > 110:
                wrong.append(f"{path.relative_to(ROOT)}:{line}: {sentence}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("room", ROOMS_WITH_TESTS)
def test_no_docstring_begins_with_a_question(room: str) -> None:
    """Docstrings of constants and fields count, too."""
    question = re.compile(r'\s*[rf]?"""(What|Whether|So many|How|Which|Where|When)\b')
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path in sources(room)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if question.match(line)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_lists_catch_what_they_are_for_and_nothing_else() -> None:
    for name in ("found", "_last_said", "FrontDoor", "turn_came", "sqlKeepsColumns", "words_of"):
        assert listed(name), name
    assert not listed("return_code") and not listed("words") and not listed("looks")
    plain = "The table was not found. Each activity answers once; the job actually ran as it should."
    assert not [pattern for pattern in PROSE if re.search(pattern, plain, re.I)]
    assert [pattern for pattern in PROSE if re.search(pattern, "Files are taken over onto a newer main.", re.I)]

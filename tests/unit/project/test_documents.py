"""The documents: short lines and pages, existing files, and a glossary with every word that the code shows to users."""

import re
from pathlib import Path
from typing import get_args

import pytest

from devstack.stack import ROOT
from sluice.causes import Cause
from sluice.checks.base import Level, Severity
from sluice.checks.verdicts import AnsweredBy, Verdict
from sluice.contracts.run import Conflict, Outcome, Stage
from tests.harness.markdown import without_code
from tests.harness.rooms import ALLOWED

LIMIT = 120
LONGEST = 150
"""Maximum number of lines of a document that users read."""
NOT_FOR_USERS = {"architecture.md": "for developers", "commands.md": "generated", "faults.md": "generated"}
USER_DOCUMENTS = [each for each in sorted((ROOT / "docs").glob("*.md")) if each.name not in NOT_FOR_USERS]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
PATH = re.compile(r"`((?:[a-z_]+/)+(?:[A-Za-z0-9_.-]+\.(?:py|md|yml|txt|json|xml|toml))?)`")
RESOLUTIONS = Conflict.model_fields["resolved"].annotation
WORDS = {
    word
    for literal in (Outcome, Cause, Stage, RESOLUTIONS, Verdict, Severity, Level, AnsweredBy)
    for word in get_args(literal)
}


def names(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("document", DOCUMENTS, ids=names)
def test_lines_are_short(document: Path) -> None:
    """Tables, code and targets of links may have long lines."""
    text = re.sub(r"\]\([^)]*\)", "]", without_code(document.read_text()))
    long = [line for line in text.splitlines() if len(line) > LIMIT and not line.startswith("|")]
    assert not long, f"{names(document)} has lines of more than {LIMIT} characters: {long}"


@pytest.mark.parametrize("document", USER_DOCUMENTS, ids=names)
def test_documents_of_users_are_short(document: Path) -> None:
    """More goes behind a link to a page of reference."""
    length = len(document.read_text().splitlines())
    assert length <= LONGEST, f"{names(document)} has {length} lines; a document for users has at most {LONGEST}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=names)
def test_files_that_documents_name_exist(document: Path) -> None:
    """A path in backquotes is relative to the project's folder or to the document."""
    folders = (ROOT, document.parent)
    missing = [
        path for path in PATH.findall(document.read_text()) if not any((folder / path).exists() for folder in folders)
    ]
    assert not missing, f"{names(document)} names files that are not there: {missing}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=names)
def test_links_lead_to_files(document: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text())
    missing = [target for target in targets if not (document.parent / target).exists()]
    assert not missing, f"{names(document)} links to {missing}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=names)
def test_tests_that_documents_name_exist(document: Path) -> None:
    known = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    named = set(re.findall(r"\b(test_\w+\.py)\b", document.read_text()))
    assert named <= known, f"{names(document)} names {named - known}"


@pytest.mark.parametrize("word", sorted(WORDS))
def test_the_glossary_has_the_words_of_types(word: str) -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text()
    assert f"`{word}`" in glossary, f"docs/glossary.md does not explain {word!r}"


def test_each_question_of_a_contributor_is_answered_by_at_most_three_files() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    answers = [line for line in text.splitlines() if line.startswith("|") and PATH.search(line)]
    assert len(answers) >= 20
    assert not [line for line in answers if len(PATH.findall(line)) > 3]


def test_the_table_of_rooms_shows_the_imports_that_are_allowed() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:3] == "| `"]
    shown = {row[0].strip("`/"): set(re.findall(r"`(\w+)`", row[2])) for row in rows}
    assert shown == ALLOWED


def test_each_sentence_of_the_safety_protocol_names_tests_that_exist() -> None:
    document = (ROOT / "docs" / "faults.md").read_text()
    sentences = re.findall(r"^\| (\d+) \| .+ \| (.+) \|$", document, re.M)
    assert [int(number) for number, _ in sentences] == list(range(1, 15))
    assert all("::test_" in held for _, held in sentences)
    for path, name in re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", document):
        assert f"def {name}(" in (ROOT / path).read_text(), f"{path} has no {name}"

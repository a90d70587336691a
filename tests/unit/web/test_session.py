"""The secret of the page: its private file, and what is derived from it."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sluice.errors import BadEnvironment
from tests.harness.page import SECRET, session
from web.session import Session, read_or_make_token, token_file


@pytest.fixture(autouse=True)
def _permissive() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def test_the_token_is_in_a_private_file_and_stays_the_same(tmp_path: Path) -> None:
    home = tmp_path / "not" / "yet"
    token = read_or_make_token(home)
    assert len(token) >= 32
    assert token_file(home).stat().st_mode & 0o777 == 0o600
    assert read_or_make_token(home) == token
    assert [each.name for each in home.iterdir()] == ["page-token"]
    assert read_or_make_token(tmp_path / "another") != token


def test_pages_that_start_at_the_same_time_have_one_token(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(read_or_make_token, [tmp_path] * 32))) == 1


@pytest.mark.parametrize("text", ["", "\n", "short"])
def test_a_file_without_a_token_is_refused(tmp_path: Path, text: str) -> None:
    """An empty token would let everybody in."""
    token_file(tmp_path).write_text(text)
    with pytest.raises(BadEnvironment, match="has no token: delete it"):
        read_or_make_token(tmp_path)


def test_what_the_browser_gets_does_not_reveal_the_token() -> None:
    own = session()
    token = own.form_token("ana")
    assert SECRET not in own.cookie and SECRET not in token
    others = {Session(SECRET, "ana", 8241).cookie, Session("x" * 32, "ana", 8240).cookie}
    assert len({own.cookie, token, own.form_token("ben"), *others}) == 5
    assert own.cookie == session("ben").cookie, "a browser stays signed in when the server starts again"


def test_each_value_is_accepted_in_its_place_alone() -> None:
    own = session()
    values = (SECRET, own.cookie, own.form_token("ana"), "", SECRET[:-1], f"{SECRET}0", "\udcff", "é")
    assert [each for each in values if own.accepts_token(each)] == [SECRET]
    assert [each for each in values if own.accepts_bearer(f"Bearer {each}")] == [SECRET]
    assert [each for each in values if own.accepts_cookie(each)] == [own.cookie]
    assert [each for each in values if own.accepts_form(each, "ana")] == [own.form_token("ana")]
    assert not own.accepts_bearer(SECRET) and not own.accepts_bearer(f"Basic {SECRET}")

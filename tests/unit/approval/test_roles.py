"""Roles: who has which, and what each permits."""

import pytest

from sluice.errors import BadEnvironment
from sluice.roles import Role, ShowRows, parse_roles, role_refusal, rows_refusal, strictest
from sluice.settings import read_settings


def test_the_highest_role_of_a_person_counts() -> None:
    roles = parse_roles(" *=viewer,platform = operator , data owners=approver,a=b=approver,")
    assert roles.role_of([]) is Role.VIEWER and roles.role_of(["others"]) is Role.VIEWER
    assert roles.role_of(["data owners", "platform"]) is Role.OPERATOR
    assert roles.role_of(["a=b"]) is Role.APPROVER
    assert parse_roles("ana=viewer").role_of(["ben"]) is None and parse_roles("").role_of(["ana"]) is None


@pytest.mark.parametrize("name", ["Platform", "PLATFORM", "platform ", "platform@example.org", "plat\u200bform", ""])
def test_a_name_that_is_only_alike_has_no_role(name: str) -> None:
    """Two accounts of an identity provider may differ in case alone."""
    assert parse_roles("platform=operator").role_of([name]) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ana", "'ana' gives no role: write NAME=ROLE, the role one of viewer, approver, operator"),
        ("ana=admin", "'ana=admin' gives no role"),
        ("ana=Operator", "'ana=Operator' gives no role"),
        ("=operator", "'=operator' gives no role"),
        ("ana=", "'ana=' gives no role"),
        ("ana=viewer, ana=operator", "'ana' has two roles"),
    ],
)
def test_a_wrong_list_of_roles(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_roles(text)
    with pytest.raises(BadEnvironment, match=f"SLUICE_PAGE_ROLES: {why}"):
        read_settings({"SLUICE_PAGE_ROLES": text})


def test_each_role_includes_those_before_it() -> None:
    allowed = {(needed.word, role.word) for needed in Role for role in Role if not role_refusal(needed, role, "do it")}
    assert allowed == {
        *(("viewer", role.word) for role in Role),
        ("approver", "approver"),
        ("approver", "operator"),
        ("operator", "operator"),
    }
    assert role_refusal(Role.APPROVER, Role.VIEWER, "decide about a run") == (
        "To decide about a run, you need the role approver or operator, and you have the role viewer. "
        "The administrator of this page gives roles, in SLUICE_PAGE_ROLES."
    )


@pytest.mark.parametrize(
    ("show_rows", "roles"),
    [("all", [*Role]), ("approvers", [Role.APPROVER, Role.OPERATOR]), ("nobody", []), (None, [])],
)
def test_rows_are_shown_to_whom_the_pipeline_says(show_rows: ShowRows | None, roles: list[Role]) -> None:
    """Rows of an unknown pipeline are hidden from everybody."""
    assert [role for role in Role if not rows_refusal(show_rows, role)] == roles


def test_the_reason_of_hidden_rows() -> None:
    assert rows_refusal("nobody", Role.OPERATOR) == "The rows are hidden: the pipeline says `show_rows: nobody`."
    assert "you need the role approver or operator" in rows_refusal("approvers", Role.VIEWER)
    assert "Temporal does not have the pipeline" in rows_refusal(None, Role.OPERATOR)


@pytest.mark.parametrize(
    ("several", "together"),
    [([], "all"), (["all", "approvers"], "approvers"), (["nobody", "all"], "nobody"), (["approvers"] * 2, "approvers")],
)
def test_rows_of_several_pipelines_are_shown_to_those_who_may_see_all_of_them(
    several: list[ShowRows], together: ShowRows
) -> None:
    assert strictest(several) == together

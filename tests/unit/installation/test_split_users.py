"""The settings of the control worker and the Spark worker as two users, and the refusals of the command."""

import io
import os
import pwd
import subprocess
from pathlib import Path

import pytest
from dotenv import dotenv_values

from devstack.errors import StackError
from devstack.split_users.probe import problems
from devstack.split_users.set_up import Request, set_up
from devstack.split_users.system import check_names, check_user, ensure_folder
from devstack.split_users.worker_settings import env_file, environment_file, given_to, temporal_credentials
from sluice.job_environment import job_environment
from sluice.settings import GROUP_OF

_OF_SPARK = ["SPARK_MASTER", "SPARK_SLOTS", "NESSIE_URI", "TEMPORAL_ADDRESS", "SLUICE_TASK_QUEUE"]


def test_the_spark_worker_gets_no_secret() -> None:
    """The name of a setting does not matter: a new one stays with the control worker until it is listed."""
    given = {field.upper(): "x" for field in GROUP_OF}
    given |= dict.fromkeys(("TEMPORAL_ADDRESS", "TEMPORAL_API_KEY", "AWS_SECRET_ACCESS_KEY", "SOMETHING_NEW"), "x")
    control, spark = given_to("control", given), given_to("spark", given)
    secret = {"SLACK_TOKEN", "TEMPORAL_API_KEY", "AWS_SECRET_ACCESS_KEY", "SOMETHING_NEW", "SLUICE_APPROVERS_FILE"}
    assert secret <= control.keys() and {*_OF_SPARK} <= spark.keys()
    assert not [name for name in spark if any(part in name for part in ("TOKEN", "KEY", "SECRET", "SLACK", "APPROV"))]
    assert "SLUICE_APPROVAL_KEY_FILE" not in control, "a person's, not a worker's"
    assert not {"SLUICE_HOME", "WAREHOUSE", "NESSIE_PUBLISHER_TOKEN_FILE"} & {*control, *spark}, "the command's own"


def test_temporal_credentials_are_for_the_environment_of_the_spark_worker(tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_text("-----BEGIN KEY-----\nit's secret\n")
    given = {"TEMPORAL_ADDRESS": "a:7233", "TEMPORAL_API_KEY": "a 'key'; $x", "TEMPORAL_TLS_CLIENT_KEY_PATH": str(key)}
    credentials = temporal_credentials(given)
    assert credentials == {"TEMPORAL_API_KEY": "a 'key'; $x", "TEMPORAL_TLS_CLIENT_KEY_DATA": key.read_text()}
    assert not job_environment(credentials, [], with_s3=True)
    (tmp_path / "spark.environment").write_text(environment_file(credentials))
    shown = ["sh", "-c", '. "$0"; printf "%s|%s" "$TEMPORAL_API_KEY" "$TEMPORAL_TLS_CLIENT_KEY_DATA"']
    done = subprocess.run([*shown, str(tmp_path / "spark.environment")], capture_output=True, text=True, check=True)
    assert done.stdout == "|".join(credentials.values())
    with pytest.raises(StackError, match="TEMPORAL_CONFIG_FILE: the Spark worker"):
        temporal_credentials({"TEMPORAL_CONFIG_FILE": "temporal.toml"})


def test_an_env_file_is_read_as_it_was_meant() -> None:
    values = {"A": "it's", "B": 'a\\b "c" # d', "C": "", "D": "$HOME"}
    assert dotenv_values(stream=io.StringIO(env_file("spark", values))) == values
    with pytest.raises(StackError, match="A contains"):
        env_file("spark", {"A": "${B}"})


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (("root", "b", "c"), "'root' cannot be the name"),
        (("a", "-b", "c"), "'-b' cannot be the name"),
        (("a", "a", "c"), "need different names"),
        (("a", "b", "root"), "cannot be the name"),
        (("a", "b", "daemon"), "the group daemon is there already, with members: daemon"),
    ],
)
def test_names_that_are_taken_or_cannot_be_used(names: tuple[str, str, str], why: str) -> None:
    with pytest.raises(StackError, match=why):
        check_names(*names)


def test_a_user_of_somebody_else_is_not_taken(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="the user nobody is there already, with the home"):
        check_user("nobody", tmp_path)
    assert not check_user("no-such-user", tmp_path)


def test_tokens_that_do_not_keep_jobs_from_main(tmp_path: Path) -> None:
    (token := tmp_path / "token").write_text("t")
    both = {"NESSIE_WRITER_TOKEN_FILE": str(token), "NESSIE_PUBLISHER_TOKEN_FILE": str(token)}
    for given in ({}, both, {"NESSIE_WRITER_TOKEN_FILE": str(token)}):
        request = Request("a", "b", "c", tmp_path / "split", tmp_path / ".env", given, Path("python"))
        with pytest.raises(StackError, match="must name two different tokens"):
            set_up(request, print)
    assert not (tmp_path / "split").exists()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """In a folder that jobs can write to, it could make root give away any folder."""
    (target := tmp_path / "target").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(StackError, match="cannot be created: Not a directory"):
        ensure_folder(tmp_path / "link", os.getuid(), os.getgid(), 0o700)
    assert target.stat().st_mode & 0o777 == 0o755
    made = ensure_folder(tmp_path / "made", os.getuid(), os.getgid(), 0o2750)
    assert made.stat().st_mode & 0o7777 == 0o2750 and pwd.getpwuid(made.stat().st_uid).pw_uid == os.getuid()


def test_what_a_user_can_reach_is_told(tmp_path: Path) -> None:
    (lake := tmp_path / "code" / "lake").mkdir(parents=True)
    (secret := tmp_path / "secret").touch()
    listed = [*problems([str(tmp_path / "gone")], [str(secret)], [str(tmp_path / "code")], [str(lake)])]
    assert f"cannot read {tmp_path / 'gone'}" in listed and any(
        each.startswith(f"can read {secret}") for each in listed
    )
    assert any(each.startswith(f"can change {tmp_path / 'code'}, and so what the control") for each in listed)

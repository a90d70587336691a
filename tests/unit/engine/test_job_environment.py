"""The variables that a Spark job inherits from the worker: those on a list, without credentials of others."""

import os
import uuid
from pathlib import Path

import pytest
from pydantic import ValidationError

from engine.job import SparkJob
from engine.spark.connect import read_session_key, session_id
from engine.spark.submit import environment
from sluice.errors import BadEnvironment
from sluice.job_environment import job_environment, names_problem, values_problem
from sluice.pipeline.write import Write
from sluice.settings import Settings, read_settings

SECRETS = {
    "SLACK_TOKEN": "xoxb-1",
    "SLACK_WEBHOOK_URL": "https://hooks.example.com/x",
    "TEMPORAL_API_KEY": "temporal-1",
    "TEMPORAL_TLS_CLIENT_KEY_PATH": "/k",
    "TEMPORAL_ADDRESS": "t:7233",
    "NESSIE_PUBLISHER_TOKEN_FILE": "/p",
    "NESSIE_WRITER_TOKEN_FILE": "/w",
    "SLUICE_CODEC_KEY_FILE": "/c",
    "SLUICE_APPROVAL_KEY_FILE": "/a",
    "SLUICE_APPROVERS_FILE": "/l",
    "SLUICE_HOME": "/h",
    "SPARK_REMOTE": "sc://h/;token=x",
    "SPARK_CONNECT_URL": "sc://h/;token=x",
    "SPARK_CONNECT_AUTHENTICATE_TOKEN": "x",
    "SPARK_RPC_SECRET": "x",
    "HADOOP_CREDSTORE_PASSWORD": "x",
    "PYTHON_KEYRING_PASSWORD": "x",
    "GITHUB_TOKEN": "ghp_1",
    "GOOGLE_APPLICATION_CREDENTIALS": "/g",
    "AZURE_CLIENT_SECRET": "x",
    "AZURE_STORAGE_KEY": "x",
    "OPENAI_API_KEY": "sk-1",
    "DATABASE_URL": "postgres://u:p@h/d",
    "PGPASSWORD": "x",
    "VAULT_TOKEN": "x",
    "DBT_ENV_SECRET_X": "x",
    "SSH_AUTH_SOCK": "/s",
    "KAFKA_SASL_PASSWORD": "x",
    "AWS_SECRET_ACCESS_KEY": "aws-1",
    "AWS_SESSION_TOKEN": "aws-2",
}
HARMLESS = {"PATH": "/bin", "LANG": "C", "LC_ALL": "C", "TZ": "UTC", "HTTPS_PROXY": "http://p", "SPARK_CONF_DIR": "/s",
            "HADOOP_CONF_DIR": "/e", "PYTHONHASHSEED": "0", "JAVA_HOME": "/j"}  # fmt: skip


def test_no_secret_passes() -> None:
    assert job_environment({**SECRETS, **HARMLESS}, with_s3=False) == HARMLESS


def test_the_store_s_credentials_pass_where_there_is_a_store() -> None:
    passed = job_environment({**SECRETS, **HARMLESS}, with_s3=True)
    assert passed.keys() - HARMLESS.keys() == {"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}


def test_what_is_named_passes_unless_it_is_the_worker_s() -> None:
    passed = job_environment(SECRETS, ["KAFKA_SASL_PASSWORD", "HADOOP_CREDSTORE_PASSWORD"], with_s3=False)
    assert passed.keys() == {"KAFKA_SASL_PASSWORD", "HADOOP_CREDSTORE_PASSWORD"}
    for name in ("SLACK_TOKEN", "TEMPORAL_API_KEY", "SLUICE_HOME", "NESSIE_PUBLISHER_TOKEN_FILE", "SPARK_REMOTE"):
        assert job_environment(SECRETS, [name], with_s3=True).get(name) is None
        assert f"a job never gets {name}" in str(names_problem([name]))
        with pytest.raises(BadEnvironment, match=r"SLUICE_JOB_ENVIRONMENT: .*a job never gets"):
            read_settings({"SLUICE_JOB_ENVIRONMENT": f"A, {name}"})
    assert "is not a valid name of a variable" in str(names_problem(["A B"]))
    assert read_settings({"SLUICE_JOB_ENVIRONMENT": " A, B ,"}).spark.job_variables == ["A", "B"]


def test_a_process_of_spark_gets_what_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**SECRETS, "MY_REGION": "eu"}.items():
        monkeypatch.setenv(name, value)
    settings = Settings.of(sluice_home=tmp_path, sluice_job_environment="MY_REGION")
    given = environment(settings.spark_jobs, tmp_path, built_in=False)
    assert not given.keys() & SECRETS.keys() and given["MY_REGION"] == "eu"
    assert given.keys() - os.environ.keys() <= {"SPARK_HOME", "JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON",
                                               "SPARK_LOCAL_IP"}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("PATH", "cannot be set by a pipeline"),
        ("LD_PRELOAD", "cannot be set by a pipeline"),
        ("PYTHONPATH", "cannot be set by a pipeline"),
        ("SPARK_HOME", "cannot be set by a pipeline"),
        ("AWS_ENDPOINT_URL", "cannot be set by a pipeline"),
        ("SLUICE_HOME", "cannot be set by a pipeline"),
        ("A-B", "is not a valid name of a variable"),
    ],
)
def test_what_a_pipeline_cannot_set(name: str, words: str) -> None:
    assert words in str(values_problem({name: "x"}))
    with pytest.raises(ValidationError, match=words):
        Write(job="job.py", environment={name: "x"})


def test_what_a_pipeline_gives_to_its_program() -> None:
    write = Write.model_validate({"job": "job.py", "environment": {"MODE": "full", "YEAR": 2024}})
    assert write.environment == {"MODE": "full", "YEAR": "2024"}
    with pytest.raises(ValidationError, match="environment is for a program of yours"):
        Write.model_validate({"source": {"path": "a.csv"}, "environment": {"MODE": "full"}})
    assert Write.model_validate({"job": "job.py", "engine": "connect"}).engine == "connect"
    with pytest.raises(ValidationError, match="engine is for a program of yours"):
        Write.model_validate({"source": {"path": "a.csv"}, "engine": "connect"})


def test_a_session_is_found_again_with_the_key_and_not_without(tmp_path: Path) -> None:
    job = SparkJob(Path("a.py"), tmp_path / "write", "wap/x/r/a1", catalog={}, run_id="r", attempt=1)
    file = tmp_path / "home" / "session.key"
    key = uuid.UUID(bytes=read_session_key(file))
    assert file.stat().st_mode & 0o077 == 0 and uuid.UUID(bytes=read_session_key(file)) == key
    assert session_id(job, 1, 1, key) == session_id(job, 1, 1, key) != session_id(job, 1, 1, uuid.uuid4())

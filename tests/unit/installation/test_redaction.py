"""Redaction: text in the form of real secrets is hidden, and ordinary text is unchanged. No key here is a real one."""

import base64
import json

import pytest

from engine.process.progress import OutputReader
from sluice.redaction import redacted

B64 = "".join(chr(65 + n % 26) + chr(97 + n * 7 % 26) + str(n % 10) for n in range(60))
"""Letters and digits, as in a key."""
HEX = "0123456789abcdef" * 4
BODY = "\n".join([B64[:64], B64[64:128], "Zm9v=="])
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}\n-----END RSA PRIVATE KEY-----"
BASIC = base64.b64encode(b"ana:opensesame").decode()
JWT = f"eyJ{B64[:20]}.eyJ{B64[:30]}.{B64[:43]}"


@pytest.mark.parametrize(
    ("secret", "text"),
    [
        ("AKIA" + "ABCD1234EFGH5678", "key AKIAABCD1234EFGH5678 was refused"),
        ("ASIA" + "ABCD1234EFGH5678", "aws_access_key_id=ASIAABCD1234EFGH5678,"),
        (B64[:40], f"aws_secret_access_key = {B64[:40]}"),
        (B64[:18] + "/+" + B64[20:40], f"SignatureDoesNotMatch for {B64[:18]}/+{B64[20:40]} in us-east-1"),
        (B64[:40], f"spark.hadoop.fs.s3a.secret.key {B64[:40]}"),
        (B64[:12], f"spark.sql.catalog.nessie.authentication.token {B64[:12]}"),
        ("AIza" + B64[:35], f"https://maps.example/api?key=AIza{B64[:35]}&x=1"),
        ("ya29." + B64[:40], f"refreshed ya29.{B64[:40]}"),
        ("GOCSPX-" + B64[:28], f"client GOCSPX-{B64[:28]}"),
        (B64[:64], json.dumps({"type": "service_account", "private_key": PEM, "client_email": "a@b"})),
        (B64[:86] + "==", f"DefaultEndpointsProtocol=https;AccountName=lake;AccountKey={B64[:86]}==;Suffix=x"),
        (B64[:43] + "=", f"Endpoint=sb://x/;SharedAccessKeyName=Root;SharedAccessKey={B64[:43]}="),
        (B64[:43], f"https://lake.blob.example/c/f.csv?sv=2022-11-02&sp=r&sig={B64[:43]}%3D&se=2026"),
        (B64[:3] + "8Q~" + B64[:34], f"client secret {B64[:3]}8Q~{B64[:34]} expired"),
        (JWT, f"Authorization: Bearer {JWT}"),
        (B64[:24], f"Bearer {B64[:24]}"),
        (BASIC, f"Proxy-Authorization: Basic {BASIC}"),
        (BASIC, f"sent basic {BASIC} to the proxy"),
        (B64[:24], f"authorization={B64[:24]}"),
        (B64[:64], PEM),
        (B64[64:128], PEM.replace("RSA ", "")),
        ("Zm9v==", PEM.replace("RSA", "OPENSSH")),
        (B64[:64], f"cut off: -----BEGIN PRIVATE KEY-----\n{B64[:64]}\n{B64[64:100]}"),
        (B64[:64], f"{B64[:64]}\n-----END PRIVATE KEY-----"),
        (JWT, f"got {JWT}"),
        ("ghp_" + B64[:36], f"ghp_{B64[:36]}"),
        ("github_pat_" + B64[:22], f"github_pat_{B64[:22]}_{B64[:59]}"),
        ("glpat-" + B64[:20], f"glpat-{B64[:20]}"),
        ("xoxb-" + "123456789012-abcdef", "xoxb-123456789012-abcdef"),
        ("T0AAAAAAA/B0AAAAAAA/" + B64[:24], f"https://hooks.slack.com/services/T0AAAAAAA/B0AAAAAAA/{B64[:24]}"),
        ("sk_" + "live_" + B64[:24], f"stripe sk_live_{B64[:24]}"),
        ("sk-proj-" + B64[:40], f"OPENAI sk-proj-{B64[:40]}"),
        ("sk-ant-api03-" + B64[:40], f"sk-ant-api03-{B64[:40]}"),
        ("hf_" + B64[:34], f"hf_{B64[:34]}"),
        ("dapi" + HEX[:32], f"token dapi{HEX[:32]}-2"),
        ("npm_" + B64[:36], f"//registry.example/:_authToken=npm_{B64[:36]}"),
        ("pypi-AgEI" + B64[:60], f"pypi-AgEI{B64[:60]}"),
        ("hunter", "password=hunter"),
        ("hunter22", "Password: hunter22"),
        ("correct horse", 'db.password: "correct horse"'),
        ("correct horse", "--password='correct horse' --user ana"),
        ("hunter2!", '{"password": "hunter2!", "user": "ana"}'),
        ("hunter2!", json.dumps(json.dumps({"client_secret": "hunter2!"}))),
        ("hunter2", "MYSQL_PWD=hunter2 mysql"),
        ("abc123def", "token: abc123def"),
        ("abcdefgh", "api_key=abcdefgh"),
        ("ana:hunter2", "jdbc:postgresql://ana:hunter2@db.example:5432/x"),
        ("ana:p@ss/w", "https://ana:p@ss/w@db.example/x"),
        (B64[:30], f"git clone https://{B64[:30]}@git.example/x.git"),
        (":hunter2", "redis://:hunter2@cache.example:6379"),
    ],
)
def test_a_secret_is_hidden(secret: str, text: str) -> None:
    assert secret in text or json.dumps(secret)[1:-1] in text
    shown = redacted(text)
    assert secret not in shown and "[hidden]" in shown
    assert redacted(shown) == shown, "redacting twice changes nothing more"


@pytest.mark.parametrize(
    "text",
    [
        f"merged {HEX} into main at {HEX[:40]}, digest {HEX[:12]}:{HEX[16:28]}",
        "wap/nyc-flights/0f8fad5b-d9cb-469f-a165-70867728950e/a1",
        "quarantine/nyc-flights/2026-01-31/0f8fad5b-d9cb-469f-a165-70867728950e",
        "nyc-flights-0123456789ab waits on http://127.0.0.1:8233/namespaces/default/workflows/nyc-flights-0123456789ab",
        "http://127.0.0.1:19120/api/v2/trees/main/contents/nyc.flights@main",
        "file:///data/Lake/2024/Q1/part00000Aa1Bb2Cc3Dd4Ee5/f.parquet of `nessie`.`nyc`.`flights@main#0123`",
        "s3://bucket/warehouse/nyc/flights_9F3A/data/00000-1-0f8fad5b-d9cb-469f-a165-70867728950e-0-00001.parquet",
        "abfss://my-long-container-name@account.dfs.core.windows.net/lake/x.csv",
        "/data/Reports2024/Region7/Customers/Orders9/x",
        "org.apache.iceberg.exceptions.CommitFailedException: Cannot commit: Reference hash is out of date",
        "AnalysisException: [TABLE_OR_VIEW_NOT_FOUND] The table or view `nyc`.`flights` cannot be found.",
        "ParseException: unexpected token: SELECT (line 1, pos 5)",
        "the password is wrong, the token expired; credentials: provide some",
        "SLUICE_APPROVAL_KEY_FILE=/home/ana/.sluice-key: the file is empty",
        "NESSIE_WRITER_TOKEN_FILE=/etc/sluice/writer.token",
        "SLUICE_APPROVAL_KEY_FILE contains no private key: `approver-key` makes one",
        "merge keys (id, secret_santa) occur more than once in the input",
        "not_null(password) of t.users: observed 3 bad rows, expected no nulls",
        "basic audit_results of the table, bearer of bad-tidings-for-everyone",
        "12 pass, 1 warn; 1,234,567 rows in 12.5 s; 2026-01-31T12:00:00+00:00; max_tokens=4096",
        "the Spark job ended with exit code 137",
        "risk-adjusted-return-of-investments and sk-learn-compatible-estimators-of-everything",
        "spark.sql.catalog.nessie.ref wap/p/r/a1",
        "email ana@example.com, path a/b@main, key=id, id: 3",
    ],
)
def test_ordinary_text_is_left_as_it_is(text: str) -> None:
    assert redacted(text) == text


def test_a_key_over_many_lines_of_a_log_is_hidden_and_the_log_goes_on() -> None:
    reader = OutputReader()
    lines = reader.feed(f"before\n{PEM}\nafter the key\n-----BEGIN EC PRIVATE KEY-----\n{BODY}\n".encode())
    lines += reader.feed(b"it was cut off\nand the log goes on 0123456789abcdef0123\n")
    text = "\n".join(lines)
    assert not any(part in text for part in BODY.splitlines())
    assert {"before", "after the key", "it was cut off"} <= set(lines)
    assert lines[-1] == "and the log goes on 0123456789abcdef0123"
    assert not any(part in "\n".join(reader.tail) for part in BODY.splitlines())


@pytest.mark.parametrize("text", ["a1" * 50_000, "a." * 50_000, "://" + "a" * 100_000, "-----BEGIN A-----" * 3000])
def test_a_long_text_takes_no_time(text: str) -> None:
    """A pattern that restarts at each character would take minutes."""
    assert len(redacted(text)) <= len(text)

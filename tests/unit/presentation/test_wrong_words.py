"""Wrong words in a command: the message is one sentence, with a hint to the command's options."""

import json
import os

import pytest

from devstack.stack import ROOT
from tests.harness.command_line import run_command


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("reject", "some-run"), "Missing option '--reason': `run_workflow.py reject --help` shows the options"),
        (("pause", "orders"), "Missing option '--note': `run_workflow.py pause --help` shows the options"),
        (("approve",), "Missing argument 'RUN': `run_workflow.py approve --help` shows the options"),
        (("list", "--zzz"), "No such option: --zzz: `run_workflow.py list --help` shows the options"),
        (
            ("run", "p.yml", "--dry-run"),
            "No such option: --dry-run: `run_workflow.py plan FILE` shows what a run would do, and starts nothing",
        ),
        (("quarantine", "show"), "Missing argument 'RUN': `run_workflow.py quarantine show --help` shows the options"),
        (
            ("undeploy", "orders"),
            "there is no command 'undeploy': delete the pipeline's file, or its key `schedule` or `arrival`, and run "
            "`deploy DIR`",
        ),
    ],
)
def test_wrong_words_are_one_sentence(words: tuple[str, ...], problem: str) -> None:
    ended = run_command(ROOT, dict(os.environ), *words)
    assert (ended.code, ended.out, ended.err) == (2, "", f"sluice: {problem}\n")
    as_json = run_command(ROOT, dict(os.environ), *words, "--json")
    assert (as_json.code, json.loads(as_json.out)["error"]) == (2, problem)


def test_a_group_without_a_command_shows_its_help() -> None:
    ended = run_command(ROOT, dict(os.environ), "quarantine")
    assert (ended.code, ended.err, "Usage:" in ended.out) == (2, "", True)

"""The branch that component tests of one session write to."""

BRANCH = "wap/warm-tests"

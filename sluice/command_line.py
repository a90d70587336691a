"""The command, and an option of it, that messages print for Sluice's command line."""

COMMAND = "python run_workflow.py"
"""Default command, for messages outside of `cli/`. `cli/program.py` returns the command of the present process."""
OVER_YOUNGER = "--over-younger"
"""The option that lets older rows win."""

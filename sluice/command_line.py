"""The command that messages print for Sluice's command line."""

COMMAND = "python run_workflow.py"
"""Default command, for messages outside of `cli/`. `cli/program.py` returns the command of the present process."""

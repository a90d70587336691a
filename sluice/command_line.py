"""The command line as messages quote it."""

COMMAND = "python run_workflow.py"
"""The command that starts it, for messages elsewhere. `cli/program.py` has the one of this terminal."""

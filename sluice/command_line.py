"""The command line as messages quote it."""

COMMAND = "python run_workflow.py"
"""How a person starts it who is not at this terminal; `cli/program.py` has the one for this terminal."""

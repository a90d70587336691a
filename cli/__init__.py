"""The command line: its commands, following a run, and what they print. It talks to Temporal alone."""

"""The command line: its commands and their output. It talks to Temporal only."""

"""The front door's rooms: commands, following a run, and showing it."""

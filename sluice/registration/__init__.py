"""Registration after a publish: the targets, their events, and the tables that they register."""

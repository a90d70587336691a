"""Which ways of starting a run go with which kinds of write, and in which order."""

"""Which source files a run loads: the input manifest, the selection, and what commits say of loaded files."""

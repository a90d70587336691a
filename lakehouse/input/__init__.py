"""Files that main contains: their loads, their order, and what a run may still load."""

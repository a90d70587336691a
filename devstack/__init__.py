"""The local stack of one machine: set-up, Temporal, Nessie and a worker in the background, and the demo."""

"""The local stack on one machine: set-up, background processes for Temporal, Nessie and a worker, and the demo."""

"""Code shared by worker, command line and triggers: Temporal's client, starting and finding runs, telemetry."""

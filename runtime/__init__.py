"""What the worker, the command line and triggers share: Temporal's client, starting and finding runs, telemetry."""

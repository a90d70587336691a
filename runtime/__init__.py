"""What a worker process needs beside its acts: telemetry, and the schedule of the reaper."""

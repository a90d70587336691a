"""Run the control worker and the Spark worker as two system users, so that jobs cannot read the credentials.

- `__main__.py`: the command. `set_up.py`: its implementation. `worker_settings.py`: the settings of each worker.
- `system.py`: users, groups, owners and modes. `probe.py`: checks, run as each user, of what it can read and change.
"""

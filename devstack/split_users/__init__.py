"""Run the control worker and the Spark worker as two users of the system, which keeps jobs from the credentials.

- `__main__.py`: the command. `set_up.py`: what it does. `worker_settings.py`: which setting goes to which worker.
- `system.py`: users, groups, owners and modes. `probe.py`: what each user can read and change, asked as that user.
"""

"""SQL of people, each query in a process of its own with limits of memory and time."""

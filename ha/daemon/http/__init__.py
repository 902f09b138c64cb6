"""The HTTP endpoint of a daemon: its pages, its probes, and its limits."""

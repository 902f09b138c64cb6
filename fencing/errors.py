"""What can be wrong with a fencing configuration."""


class BadSpec(ValueError):
    """A line of ``dfs.ha.fencing.methods`` cannot be used; the message names the line and why."""

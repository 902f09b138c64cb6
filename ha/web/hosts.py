"""Under which names nnha web may be asked; see ``ha.daemon.http.hosts``."""

from ha.daemon.http.hosts import allowed_hosts, may_be_asked

__all__ = ["allowed_hosts", "may_be_asked"]

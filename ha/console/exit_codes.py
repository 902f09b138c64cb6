"""Exit codes of ``nnha`` commands, and of the Hadoop-compatible haadmin.

See docs/reference/operations.md#exit-codes.
"""

from typing import Final

DONE: Final = 0
UNEXPECTED: Final = 1
"""Also of a daemon that could not start, and of Hadoop's commands with no better code."""
USAGE: Final = 2
REFUSED: Final = 3
"""Refused, and nothing was changed."""
FAILED: Final = 4
"""Failed, and the state is known."""
OUTCOME_UNKNOWN: Final = 5
"""It is not known whether it was done; the message says how to find out."""
UNREACHABLE: Final = 6
"""A server that the command needs did not answer in time; nothing was changed."""
UNAUTHORISED: Final = 7
"""We may not ask for this; nothing was changed."""
UNHEALTHY: Final = 8
"""With ``--check``, and where files cannot be read."""
OPEN_TO_STRANGERS: Final = 78
"""Only of daemons (``ha.daemon.exposure``): an address can be reached from other machines."""
INTERRUPTED: Final = 130

HADOOP_FAILURE: Final = 255
"""Hadoop's -1, as a shell sees it: wrong usage, refused, failed and unreachable alike."""

"""The command line: ``nnha`` and its commands for people and scripts."""

import time

STARTED = time.monotonic()
"""When this process began to load the command line."""

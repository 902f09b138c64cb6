"""What can go wrong while a local cluster is built, in words that say what to do."""


class LocalClusterError(Exception):
    """Something the local cluster needs is missing, failed to start, or did not happen in time.

    The message says what was attempted, what was found, and what to do next; commands print it and
    exit non-zero without a traceback.
    """

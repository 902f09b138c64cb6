"""Ends a controller that cannot act any more, so that it does not keep the lock."""

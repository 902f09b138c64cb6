"""Ends a controller that hangs, so that it does not keep the lock."""

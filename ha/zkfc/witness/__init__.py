"""Removes a peer's lock before its session expires, if its owner and its writer are silent."""

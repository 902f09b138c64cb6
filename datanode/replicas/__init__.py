"""Replicas and their files: what may be done with a replica, and the volumes that hold it."""

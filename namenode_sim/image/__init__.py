"""Hadoop's fsimage: a whole namespace in one file."""

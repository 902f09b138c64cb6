"""Hadoop configuration: the operator's XML files, read with Hadoop's rules and typed keys."""

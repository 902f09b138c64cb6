"""Hadoop's edit log: the ops of a namespace and their bytes."""

"""Checkpoints and namespace tables on Spark; the driver never holds the namespace."""

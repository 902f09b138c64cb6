"""Checkpoints and namespace tables on Spark; nothing is built here yet."""

"""Engines run pure functions over tasks: in this process, in a few processes, or on Spark."""

"""A cluster of real processes on this machine."""

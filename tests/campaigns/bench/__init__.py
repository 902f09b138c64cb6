"""Measured figures, each against a peer or a limit measured in the same run."""

"""Monitors the health of the local NameNode: a core that judges probes, and a loop of probes."""

"""The health of the local NameNode: a pure core that judges probes, and the loop that probes."""

"""Is the local NameNode well: a pure judgement of probe outcomes, and the loop that probes."""

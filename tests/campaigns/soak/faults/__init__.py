"""Real faults on a cluster of real processes, each host a network namespace of this machine."""

"""A whole cluster of real processes on this machine, and a Java client to go with it."""

"""A snapshot of the cluster: queries to every daemon and to ZooKeeper, and ``nnha status``."""

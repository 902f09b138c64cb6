"""One look at the cluster: every daemon and ZooKeeper asked at once, and ``nnha status``."""

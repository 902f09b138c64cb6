"""Which NameNode may be active: the election on ZooKeeper, a pure core with one door to kazoo."""

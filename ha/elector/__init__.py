"""Who may be active: the election on ZooKeeper, as a pure core with one door to kazoo."""

"""Elects the active NameNode with ZooKeeper, as Hadoop's ActiveStandbyElector does."""

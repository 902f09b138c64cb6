"""What can go wrong between the elector and ZooKeeper, with what an operator can do about it."""


class ZooKeeperUnavailable(Exception):
    """ZooKeeper did not answer before the deadline."""


class ZooKeeperRefused(Exception):
    """ZooKeeper answered, and refused: no such znode, no rights, bad credentials."""


class TakeoverImpossible(Exception):
    """Fencing the old active or promoting our NameNode failed; the text says which and why."""


class BadBreadcrumb(Exception):
    """Bytes in a lock or breadcrumb znode that do not name a NameNode."""


class BadCredentialSetting(Exception):
    """A value of ha.zookeeper.acl or ha.zookeeper.auth that cannot be read."""

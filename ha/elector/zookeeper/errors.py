"""The errors of the elector and of its ZooKeeper session."""


class ZooKeeperUnavailable(Exception):
    """ZooKeeper did not answer before the deadline."""


class ZooKeeperRefused(Exception):
    """ZooKeeper refused the request: no such znode, no rights, bad credentials."""


class TakeoverImpossible(Exception):
    """The old active could not be fenced, or the local NameNode not promoted; the text says why."""


class BadBreadcrumb(Exception):
    """The bytes of a lock or breadcrumb znode do not name a NameNode."""


class BadCredentialSetting(Exception):
    """The value of ha.zookeeper.acl or ha.zookeeper.auth cannot be parsed."""

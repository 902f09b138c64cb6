"""How two namespaces are compared where Hadoop's own image loses something.

Each entry of these lists is a fact about Hadoop 3.5.0, shown by a test here.
"""

from dataclasses import replace

from namenode_sim.namespace.namespace import Namespace
from tests.namenode_sim.namespace.dump import differences


def content_differences(ours: Namespace, theirs: Namespace, *, live: bool = False) -> list[str]:
    """Return all differences but the last txid: a NameNode that starts and saves writes edits.

    ``live``: ``theirs`` was saved by the NameNode that wrote the log, not by one that read it.
    """
    theirs.last_applied = ours.last_applied
    _forget_default_replication(ours, theirs)
    if live:
        _forget_expiry_of_keys(ours, theirs)
    return differences(ours, theirs)


def _forget_default_replication(*namespaces: Namespace) -> None:
    """CacheManager.saveState leaves a pool's default replication out; a restart makes it 1."""
    for namespace in namespaces:
        namespace.cache.pools = {
            name: replace(pool, default_replication=1)
            for name, pool in namespace.cache.pools.items()
        }


def _forget_expiry_of_keys(*namespaces: Namespace) -> None:
    """Forget the final expiry date of a retired key, which Hadoop never logs.

    See AbstractDelegationTokenSecretManager.rollMasterKey: a standby has another date too.
    """
    for namespace in namespaces:
        namespace.secrets.keys = {
            number: replace(key, expiry_date=0) for number, key in namespace.secrets.keys.items()
        }

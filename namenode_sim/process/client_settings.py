"""The limits and defaults of the client calls, out of Hadoop's keys."""

import posixpath

from ha.conf.configuration import Configuration
from ha.conf.data_encryption import data_algorithm
from ha.conf.errors import ConfigurationError
from ha.conf.keys import datanode as datanode_keys
from ha.conf.keys import files as keys
from ha.conf.keys import security as security_keys
from ha.security.kerberos.own import short_name
from namenode_sim.client_protocol.words.model import DEFAULT_SETTINGS, Settings, TokenRules
from namenode_sim.process.user_groups import SystemGroups

_HEARTBEATS_OF_A_RECOVERY = 30
"""How long a block recovery may take (BlockManager's BLOCK_RECOVERY_TIMEOUT_MULTIPLIER)."""


def client_settings(conf: Configuration) -> Settings:
    """Read every field of the settings from its key.

    Raises:
        ConfigurationError: if a key has a value that cannot be, or two contradict each other.
    """
    lowest, highest = conf.get(keys.REPLICATION_MIN), conf.get(keys.REPLICATION_MAX)
    if lowest > highest:
        raise ConfigurationError(
            f"{conf.where(keys.REPLICATION_MIN)} is {lowest}, more than {keys.REPLICATION_MAX.name}"
            f", which is {highest}. Correct one of the two."
        )
    listing_limit = conf.get(keys.LISTING_LIMIT)
    return Settings(
        block_size=conf.get(keys.BLOCK_SIZE),
        bytes_per_checksum=conf.get(keys.BYTES_PER_CHECKSUM),
        checksum_type=conf.get(keys.CHECKSUM_TYPE),
        write_packet_size=conf.get(keys.PACKET_SIZE),
        replication=conf.get(keys.REPLICATION),
        file_buffer_size=conf.get(keys.BUFFER_SIZE),
        trash_interval_minutes=conf.get(keys.TRASH_INTERVAL),
        listing_limit=listing_limit if listing_limit > 0 else DEFAULT_SETTINGS.listing_limit,
        batched_listing_limit=conf.get(keys.BATCHED_LISTING_LIMIT),
        min_replication=lowest,
        max_replication=highest,
        min_block_size=conf.get(keys.MIN_BLOCK_SIZE),
        max_blocks=conf.get(keys.MAX_BLOCKS),
        max_component_bytes=conf.get(keys.MAX_COMPONENT),
        max_directory_items=conf.get(keys.MAX_DIRECTORY),
        access_time_precision_ms=round(conf.get(keys.ACCESS_TIME) * 1000),
        hard_lease_seconds=conf.get(keys.LEASE_HARD_LIMIT),
        block_recovery_seconds=_HEARTBEATS_OF_A_RECOVERY
        * conf.get(datanode_keys.HEARTBEAT_INTERVAL),
        permissions_enabled=conf.get(keys.PERMISSIONS),
        owners_set_quotas=conf.get(keys.OWNERS_SET_QUOTAS),
        acls_enabled=conf.get(keys.ACLS),
        posix_acl_inheritance=conf.get(keys.ACL_INHERITANCE),
        xattrs_enabled=conf.get(keys.XATTRS),
        max_xattrs=conf.get(keys.MAX_XATTRS),
        max_xattr_bytes=conf.get(keys.MAX_XATTR_SIZE),
        max_snapshots=conf.get(keys.SNAPSHOTS_OF_ALL),
        max_snapshots_of_one=conf.get(keys.SNAPSHOTS_OF_ONE),
        protected=_protected_directories(conf),
        protected_below=conf.get(keys.PROTECTED_BELOW),
        tokens=_token_rules(conf),
        data_algorithm=data_algorithm(conf),
    )


def groups_of(conf: Configuration) -> SystemGroups:
    """Return what knows users' groups; nothing is asked of the system yet."""
    return SystemGroups(conf.get(keys.STATIC_GROUPS), lifetime_seconds=conf.get(keys.GROUPS_CACHE))


def _token_rules(conf: Configuration) -> TokenRules:
    """Return the rules of delegation tokens, which are for Kerberos clusters, as in Hadoop."""
    kerberos = conf.get(security_keys.AUTHENTICATION).lower() == "kerberos"
    times = (
        conf.get(key) * 1000
        for key in (
            security_keys.TOKEN_MAX_LIFETIME,
            security_keys.TOKEN_RENEW_INTERVAL,
            security_keys.TOKEN_KEY_INTERVAL,
        )
    )
    always = conf.get(security_keys.TOKEN_ALWAYS)
    return TokenRules(kerberos or always, kerberos, *map(round, times), short_name=short_name)


def _protected_directories(conf: Configuration) -> frozenset[str]:
    paths = conf.get(keys.PROTECTED)
    for path in paths:
        if not path.startswith("/"):
            raise ConfigurationError(
                f"{conf.where(keys.PROTECTED)} names {path!r}, which is not an absolute path, "
                "for instance /user. Correct it: a directory that is not protected may be lost."
            )
    return frozenset("/" + posixpath.normpath(path).lstrip("/") for path in paths)

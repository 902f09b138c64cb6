"""The one setting by which Hadoop's clients find the active NameNode of a nameservice."""

from typing import Final

from ha.conf.configuration import Configuration
from ha.conf.keys import cluster as keys

CLIENT_PROXY: Final = keys.CLIENT_PROXY.name
"""Read with ``.<nameservice>`` only; without it a client resolves the nameservice as a host
(NameNodeProxiesClient.getFailoverProxyProviderClass)."""
USUAL_PROXY: Final = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"


def without_client_proxy(configuration: Configuration) -> tuple[str, ...]:
    """Return the nameservices with several NameNodes whose active no client could find."""
    return tuple(
        nameservice
        for nameservice in configuration.get(keys.NAMESERVICES)
        if configuration.raw(f"dfs.ha.namenodes.{nameservice}")
        and not configuration.raw(f"{keys.CLIENT_PROXY.name}.{nameservice}")
    )

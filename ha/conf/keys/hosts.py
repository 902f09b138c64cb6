"""The keys of a NameNode about hosts: which may be DataNodes, which leave, and their racks."""

from ha.conf.keys.key import Key, Scope
from ha.conf.keys.units import duration, flag, one_of, text, whole

_G = Scope.GLOBAL
_PACKAGE = "org.apache.hadoop.hdfs.server.blockmanagement"

SCRIPT_MAPPING = "org.apache.hadoop.net.ScriptBasedMapping"
TABLE_MAPPING = "org.apache.hadoop.net.TableMapping"
TEXT_HOSTS = f"{_PACKAGE}.HostFileManager"
JSON_HOSTS = f"{_PACKAGE}.CombinedHostFileManager"

INCLUDE = Key(
    "dfs.hosts", text, "", _G, "the file with the hosts that may be DataNodes; empty: all may"
)
EXCLUDE = Key("dfs.hosts.exclude", text, "", _G, "the file with the hosts to be decommissioned")
PROVIDER = Key(
    "dfs.namenode.hosts.provider.classname",
    one_of(TEXT_HOSTS, JSON_HOSTS),
    TEXT_HOSTS,
    _G,
    "CombinedHostFileManager: dfs.hosts names one file in JSON, with a state for each host",
)
LOOK = Key(
    "dfs.namenode.decommission.interval",
    duration("s", zero=False),
    "30",
    _G,
    "how often the blocks of DataNodes that leave service are looked at",
)
MOST_AT_ONCE = Key(
    "dfs.namenode.decommission.max.concurrent.tracked.nodes",
    whole(at_least=1),
    "100",
    _G,
    "of so many DataNodes at once",
)
MAINTAINED_LEAST = Key(
    "dfs.namenode.maintenance.replication.min",
    whole(),
    "1",
    _G,
    "so many replicas of each block stay elsewhere while a DataNode is in maintenance",
)
MAPPING = Key(
    "net.topology.node.switch.mapping.impl",
    one_of(SCRIPT_MAPPING, TABLE_MAPPING),
    SCRIPT_MAPPING,
    _G,
    "racks by the script, or by the table; also by that where there is no script",
)
SCRIPT = Key(
    "net.topology.script.file.name",
    text,
    "",
    _G,
    "a program that gets addresses and prints a rack for each; it has 10 s",
)
SCRIPT_ARGUMENTS = Key(
    "net.topology.script.number.args",
    whole(at_least=1),
    "100",
    _G,
    "so many addresses it gets at once",
)
TABLE = Key(
    "net.topology.table.file.name",
    text,
    "",
    _G,
    "a file of two columns, a host or an address and its rack",
)
REJECT_UNRESOLVED = Key(
    "dfs.namenode.reject-unresolved-dn-topology-mapping",
    flag,
    "false",
    _G,
    "a DataNode whose rack cannot be found out is refused; else it is on /default-rack",
)

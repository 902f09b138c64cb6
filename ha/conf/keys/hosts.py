"""The keys of a NameNode about hosts: which may be DataNodes, which leave, and their racks."""

from ha.conf.keys.key import Key, Scope
from ha.conf.keys.units import duration, flag, one_of, text, whole

_G = Scope.GLOBAL
_PACKAGE = "org.apache.hadoop.hdfs.server.blockmanagement"
_NAMENODE, _TOPOLOGY = "dfs.namenode", "net.topology"
SCRIPT_MAPPING = "org.apache.hadoop.net.ScriptBasedMapping"
TABLE_MAPPING = "org.apache.hadoop.net.TableMapping"
TEXT_HOSTS = f"{_PACKAGE}.HostFileManager"
JSON_HOSTS = f"{_PACKAGE}.CombinedHostFileManager"

_PROVIDERS, _MAPPINGS = one_of(TEXT_HOSTS, JSON_HOSTS), one_of(SCRIPT_MAPPING, TABLE_MAPPING)
_JSON = "CombinedHostFileManager: dfs.hosts names one file in JSON, with a state for each host"
_LOOK = "how often the blocks of DataNodes that leave service are looked at"
_LEAST = "so many replicas of each block stay elsewhere while a DataNode is in maintenance"
_BY = "racks by the script, or by the table; also by that where there is no script"
_RUN = "a program that gets addresses and prints a rack for each; it has 10 s"
_TABLE = "a file of two columns, a host or an address and its rack"
_REJECT = "a DataNode whose rack cannot be found out is refused; else it is on /default-rack"

INCLUDE = Key("dfs.hosts", text, "", _G, "the file of hosts that may be DataNodes; empty: all may")
EXCLUDE = Key("dfs.hosts.exclude", text, "", _G, "the file of hosts to be decommissioned")
PROVIDER = Key(f"{_NAMENODE}.hosts.provider.classname", _PROVIDERS, TEXT_HOSTS, _G, _JSON)
LOOK = Key(f"{_NAMENODE}.decommission.interval", duration("s", zero=False), "30", _G, _LOOK)
MOST_AT_ONCE = Key(
    f"{_NAMENODE}.decommission.max.concurrent.tracked.nodes",
    whole(at_least=1), "100", _G, "of so many DataNodes at once",
)  # fmt: skip
MAINTAINED_LEAST = Key(f"{_NAMENODE}.maintenance.replication.min", whole(), "1", _G, _LEAST)
MAPPING = Key(f"{_TOPOLOGY}.node.switch.mapping.impl", _MAPPINGS, SCRIPT_MAPPING, _G, _BY)
SCRIPT = Key(f"{_TOPOLOGY}.script.file.name", text, "", _G, _RUN)
SCRIPT_ARGUMENTS = Key(
    f"{_TOPOLOGY}.script.number.args", whole(at_least=1), "100", _G, "so many addresses at once"
)
TABLE = Key(f"{_TOPOLOGY}.table.file.name", text, "", _G, _TABLE)
REJECT_UNRESOLVED = Key(
    f"{_NAMENODE}.reject-unresolved-dn-topology-mapping", flag, "false", _G, _REJECT
)

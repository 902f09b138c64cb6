"""What a NameNode refuses DataNodes."""


class DatanodesError(Exception):
    """Everything that this package raises on purpose."""


class StrangeNamespace(DatanodesError):
    """A DataNode belongs to another namespace."""

    def __init__(self, datanode: str, theirs: object, ours: object) -> None:
        super().__init__(
            f"Unregistered server: DataNode {datanode} is of {theirs}, and this NameNode of "
            f"{ours}; nothing of what it said was taken in. Correct its configuration, or give it "
            f"directories of its own"
        )


class VersionTooOld(DatanodesError):
    """A DataNode's software is older than what is accepted."""

    def __init__(self, datanode: str, found: str, oldest: str) -> None:
        super().__init__(
            f"The reported DataNode version is too low to communicate with this NameNode. "
            f"DataNode version: '{found}' Minimum DataNode version: '{oldest}' ({datanode}). "
            f"Upgrade it, or lower dfs.namenode.min.supported.datanode.version"
        )


class NotIncluded(DatanodesError):
    """A DataNode is not on the include list (DisallowedDatanodeException)."""

    def __init__(self, datanode: str) -> None:
        super().__init__(
            f"Datanode denied communication with namenode because the host is not in the "
            f"include-list: {datanode}. Add it on each NameNode, and run dfsadmin -refreshNodes"
        )


class UnevenRacks(DatanodesError):
    """A DataNode's rack is on another level than those of the others."""

    def __init__(self, datanode: str, rack: str, other: str) -> None:
        super().__init__(
            f"Failed to add {rack}/{datanode}: You cannot have a rack and a non-rack node at the "
            f"same level of the network topology; another DataNode is on {other}. Nothing has "
            f"changed. Correct the table or the script of racks, which is asked again"
        )


class UnresolvedRack(DatanodesError):
    """The rack of a DataNode is not known, and is to be (UnresolvedTopologyException)."""

    def __init__(self, datanode: str) -> None:
        super().__init__(
            f"Unresolved topology mapping for host {datanode}, which was not registered "
            f"(dfs.namenode.reject-unresolved-dn-topology-mapping); it may ask again"
        )


class BadHosts(DatanodesError):
    """A hosts file cannot be read, or an entry of it is not valid."""

    def __init__(self, where: str, found: str) -> None:
        super().__init__(
            f"{where}: {found}. The lists of hosts stay as they were; correct the file, and refresh"
        )


class StillElsewhere(DatanodesError):
    """A DataNode with the same uuid is heard from another address."""

    def __init__(self, uuid: str, known: str, asking: str, seconds: float) -> None:
        super().__init__(
            f"{asking} wants to register as DataNode {uuid}, which was heard from {known} less "
            f"than {seconds:g} s ago; it was not registered. If the DataNode has moved, it may ask "
            f"again after that time; if its directories were copied, empty one of the copies"
        )


class NotRegistered(DatanodesError):
    """A DataNode speaks that is not registered, or counts as dead."""

    def __init__(self, datanode: str, what: str) -> None:
        super().__init__(
            f"Got {what} from unregistered or dead node {datanode}; nothing of it was taken in. "
            f"The DataNode must register again"
        )


class LeaseNotHeld(DatanodesError):
    """A full report came without the lease that it names."""

    def __init__(self, datanode: str, lease: int, held: int | None) -> None:
        holds = "none" if held is None else f"{held}"
        super().__init__(
            f"Block report lease {lease} of DataNode {datanode} is not valid (it holds {holds}); "
            f"nothing of the report was taken in. The DataNode may ask for another lease with its "
            f"next heartbeat"
        )


class TooManyStoragesHere(DatanodesError):
    """A DataNode has more storages than one may have."""

    def __init__(self, datanode: str, count: int, limit: int) -> None:
        super().__init__(
            f"DataNode {datanode} has {count} storages, at most {limit} are taken in; nothing of "
            f"what it said was. Run several DataNodes on that host"
        )


class UnknownDatanode(DatanodesError):
    """A replica is reported to be damaged on a DataNode that has never registered."""

    def __init__(self, block_id: int, stamp: int, datanode: str) -> None:
        super().__init__(
            f"Cannot mark blk_{block_id}_{stamp} as corrupt because datanode {datanode[:256]!r} "
            f"does not exist: it has not registered with this NameNode since its start. Ask again "
            f"once it has"
        )

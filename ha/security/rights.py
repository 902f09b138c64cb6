"""The one table of rights: which role may do what.  What it does not name is denied to all.

Faces are Java's interfaces by their last name, ``JournalNode`` (our own calls, over gRPC, Hadoop
RPC and write lanes alike) and ``HTTP``.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from ha.record import dataclass
from ha.security.caller import Role

HTTP: Final = "HTTP"
WEBHDFS: Final = "/webhdfs/v1{path:(/(?s:.*))?}"
"""Of which a handler asks for the right to the call of ClientProtocol that is meant."""
FILES: Final = "/files{path:(/(?s:.*))?}"
JOURNALNODE: Final = "JournalNode"
CLIENT_PROTOCOL: Final = "ClientProtocol"
NAMENODE_PROTOCOL: Final = "NamenodeProtocol"
CLIENT_DATANODE_PROTOCOL: Final = "ClientDatanodeProtocol"
REFRESH_USER_MAPPINGS: Final = "RefreshUserMappingsProtocol"
RECONFIGURATION: Final = "ReconfigurationProtocol"
REFRESH_AUTHORIZATION_POLICY: Final = "RefreshAuthorizationPolicyProtocol"
CLIENT_FACES: Final = frozenset(
    (
        CLIENT_PROTOCOL, CLIENT_DATANODE_PROTOCOL, REFRESH_USER_MAPPINGS,
        REFRESH_AUTHORIZATION_POLICY, RECONFIGURATION, NAMENODE_PROTOCOL,
    )
)  # fmt: skip
"""What Java's clients call; of the second only the length of a block that is being written."""

NN, JN, ZKFC, ADMIN, OPERATOR = (
    Role.NAMENODE, Role.JOURNALNODE, Role.ZKFC, Role.ADMIN, Role.OPERATOR,
)  # fmt: skip
CHECKPOINTER, CLIENT, DATANODE = Role.CHECKPOINTER, Role.CLIENT, Role.DATANODE


class Open(Enum):
    """Whether a caller needs no role at all."""

    NO = auto()
    TO_ALL = auto()
    ON_THIS_MACHINE = auto()


@dataclass(frozen=True, slots=True)
class Right:
    """The roles that may take an action.  ``audited``: it is written down even when allowed."""

    roles: frozenset[Role]
    audited: bool = False
    open: Open = Open.NO


def _may(*roles: Role) -> Right:
    return Right(frozenset(roles))


def _with_audit(*roles: Role) -> Right:
    return Right(frozenset(roles), audited=True)


def _each(names: str, right: Right) -> dict[str, Right]:
    return dict.fromkeys(names.split(), right)


def _each_page(paths: str, right: Right) -> dict[str, Right]:
    return {f"GET {path}": right for path in paths.split()}


_LOOKS: Final = _may(NN, JN, ZKFC, ADMIN, OPERATOR, CHECKPOINTER)
_READS: Final = _may(NN, JN, ADMIN, CHECKPOINTER)
_WRITES: Final = _may(NN)
_UPGRADES: Final = _with_audit(NN, ADMIN)
_OPEN: Final = Right(frozenset(), open=Open.TO_ALL)

_CLIENT_CALLS: Final = """
abandonBlock addBlock addCacheDirective addCachePool allowSnapshot append checkAccess complete
concat create createSnapshot createSymlink delete deleteSnapshot disallowSnapshot fsync
getAclStatus getAdditionalDatanode getBatchedListing getBlockLocations getContentSummary
getCurrentEditLogTxid getDataEncryptionKey getDatanodeReport getDatanodeStorageReport
getDelegationToken getEZForPath getEnclosingRoot getErasureCodingPolicies getErasureCodingPolicy
getFileInfo getFileLinkInfo
getFsECBlockGroupStats getFsReplicatedBlockStats getFsStats getHAServiceState getLinkTarget
getListing getLocatedFileInfo getPreferredBlockSize getQuotaUsage getServerDefaults
getSlowDatanodeReport getSnapshotDiffReport getSnapshotDiffReportListing getSnapshotListing
getSnapshottableDirListing getStoragePolicies getStoragePolicy getXAttrs isFileClosed
listCacheDirectives listCachePools listCorruptFileBlocks listEncryptionZones listOpenFiles
listXAttrs mkdirs modifyAclEntries modifyCacheDirective modifyCachePool msync recoverLease
removeAcl removeAclEntries removeCacheDirective removeCachePool removeDefaultAcl removeXAttr
rename rename2 renameSnapshot renewLease reportBadBlocks rollingUpgrade satisfyStoragePolicy setAcl
setOwner
renewDelegationToken cancelDelegationToken
setPermission setQuota setReplication setSafeMode setStoragePolicy setTimes setXAttr truncate
unsetStoragePolicy updateBlockForPipeline updatePipeline upgradeStatus
"""

RIGHTS: Final[Mapping[str, Mapping[str, Right]]] = {
    CLIENT_PROTOCOL: {
        # Within a user's permissions, which the handlers check.  No daemon's certificate opens it:
        # a thief of one could name any user.
        **_each(_CLIENT_CALLS, _may(CLIENT, ADMIN)),
        **_each("finalizeUpgrade metaSave saveNamespace", _with_audit(CLIENT, ADMIN)),
        "rollEdits": _with_audit(CLIENT, ADMIN, CHECKPOINTER),
        **_each("refreshNodes setBalancerBandwidth", _with_audit(CLIENT, ADMIN)),
    },
    REFRESH_USER_MAPPINGS: _each(
        "refreshUserToGroupsMappings refreshSuperUserGroupsConfiguration",
        _with_audit(CLIENT, ADMIN),
    ),
    REFRESH_AUTHORIZATION_POLICY: {"refreshServiceAcl": _with_audit(CLIENT, ADMIN)},
    "HAServiceProtocol": {
        "getServiceStatus": _may(ZKFC, NN, ADMIN, OPERATOR, CHECKPOINTER),
        "monitorHealth": _may(ZKFC, NN, ADMIN, OPERATOR),
        "transitionToActive": _with_audit(ZKFC, ADMIN),
        "transitionToStandby": _with_audit(ZKFC, ADMIN),
        "transitionToObserver": _with_audit(ADMIN),
    },
    "ZKFCProtocol": {
        "cedeActive": _with_audit(ZKFC, ADMIN),
        "gracefulFailover": _with_audit(ZKFC, ADMIN),
    },
    "JournalWitness": {"writerSilence": _may(ZKFC, ADMIN, OPERATOR)},
    NAMENODE_PROTOCOL: {
        **_each("getTransactionId getMostRecentCheckpointTxId", _may(NN, CHECKPOINTER, ADMIN)),
        # Hadoop's Balancer and Mover are clients; the handlers check that a superuser runs them.
        **_each(
            "versionRequest isUpgradeFinalized isRollingUpgrade",
            _may(NN, CHECKPOINTER, CLIENT, ADMIN),
        ),
        **_each("getBlocks getBlockKeys", _may(CLIENT, ADMIN)),
    },
    "DatanodeProtocol": _each(
        "versionRequest registerDatanode sendHeartbeat blockReport blockReceivedAndDeleted "
        "cacheReport errorReport reportBadBlocks commitBlockSynchronization",
        _may(DATANODE),
    ),
    "DatanodeLifelineProtocol": {"sendLifeline": _may(DATANODE)},
    "InterDatanodeProtocol": _each(
        "initReplicaRecovery updateReplicaUnderRecovery", _may(DATANODE)
    ),
    CLIENT_DATANODE_PROTOCOL: {
        "getReplicaVisibleLength": _may(CLIENT, ADMIN),
        **_each("getDatanodeInfo getBalancerBandwidth", _may(ADMIN, OPERATOR, NN)),
        **_each(
            "triggerBlockReport evictWriters shutdownDatanode startReconfiguration",
            _with_audit(ADMIN),
        ),
        **_each("getReconfigurationStatus listReconfigurableProperties", _may(ADMIN)),
    },
    RECONFIGURATION: {
        "startReconfiguration": _with_audit(CLIENT, ADMIN),
        **_each("getReconfigurationStatus listReconfigurableProperties", _may(CLIENT, ADMIN)),
    },
    "QJournalProtocol": {
        **_each("isFormatted getJournalState getJournalCTime canRollBack", _LOOKS),
        **_each("getEditLogManifest getJournaledEdits", _READS),
        **_each(
            "journal heartbeat startLogSegment finalizeLogSegment prepareRecovery acceptRecovery",
            _WRITES,
        ),
        **_each("newEpoch purgeLogs", _with_audit(NN)),
        "format": _with_audit(NN, ADMIN),
        "format force": _with_audit(ADMIN),
        **_each("doPreUpgrade doUpgrade doFinalize", _UPGRADES),
        **_each("doRollback discardSegments", _with_audit(ADMIN)),
    },
    "InterQJournalProtocol": _each("getEditLogManifestFromJournal getStorageInfo", _READS),
    JOURNALNODE: {
        **_each(
            "IsFormatted GetJournalState GetStatus PeekRecovery CanRollBack GetJournalCTime",
            _LOOKS,
        ),
        **_each("GetEditLogManifest GetJournaledEdits GetPeerManifest", _READS),
        **_each(
            "StartLogSegment Write FinalizeLogSegment PrepareRecovery AcceptRecovery "
            "ResumeSegment CatchUp",
            _WRITES,
        ),
        **_each("NewEpoch PurgeLogs", _with_audit(NN)),
        "Format": _with_audit(NN, ADMIN),
        "Format force": _with_audit(ADMIN),
        # A writer admits a learner by itself, and an administrator by hand.
        "Admit": _with_audit(NN, ADMIN),
        **_each("PreUpgrade Upgrade FinalizeUpgrade", _UPGRADES),
        **_each("RollBack DiscardSegments", _with_audit(ADMIN)),
    },
    HTTP: {
        **{
            f"GET {page}": _OPEN
            for page in ("/livez", "/readyz", "/active", "/standby", "/isActive", "/health")
        },
        # What the bodies of open pages say beyond well or unwell.
        "GET reasons": _may(OPERATOR, ADMIN, ZKFC, NN),
        "GET /metrics": Right(frozenset({OPERATOR, ADMIN}), open=Open.ON_THIS_MACHINE),
        "GET /status": _may(OPERATOR, ADMIN, ZKFC, NN),
        # What a daemon is; of nnha web, the cluster.
        **_each_page(
            "/ /web.css /web.js /events /history /datanodes", _may(OPERATOR, ADMIN, ZKFC, NN)
        ),
        **_each_page("/node/{namenode} /failover/{number}", _may(OPERATOR, ADMIN, ZKFC, NN)),
        **_each_page(
            "/api/v1/status /api/v1/history /api/v1/explain /api/v1/events",
            _may(OPERATOR, ADMIN, ZKFC, NN),
        ),
        **_each_page("/jmx /last-hour", _may(OPERATOR, ADMIN, ZKFC, NN)),
        "GET /stacks": _may(ADMIN, ZKFC),
        # As ClientProtocol: within the permissions of a user, in whose name the caller may ask.
        "GET /fsck": _may(CLIENT, ADMIN),
        # Names of files.
        **_each_page(f"/blocks /block/{{block}} /file {FILES}", _may(OPERATOR, ADMIN)),
        "GET /imagetransfer": _may(NN, CHECKPOINTER, ADMIN),
        "PUT /imagetransfer": _with_audit(NN, CHECKPOINTER),
        "GET /getJournal": _may(NN, JN, CHECKPOINTER, ADMIN),
        **{f"{method} {WEBHDFS}": _OPEN for method in ("GET", "PUT", "POST", "DELETE")},
    },
}

ZNODES: Final[Mapping[str, Mapping[Role, str]]] = {
    name: {ZKFC: "rwcda", ADMIN: "rwcda", OPERATOR: "r"}
    for name in (
        "ActiveStandbyElectorLock", "ActiveBreadCrumb", "NnhaActiveTerm", "NnhaPause", "NnhaDrain",
        "NnhaMembers", "NnhaNamesakes", "NnhaHistory", "NnhaProbe", "NnhaLockCount",
    )
}  # fmt: skip
"""What each role may do with a znode.  ZooKeeper holds them to it, by the ACL that nnha sets."""

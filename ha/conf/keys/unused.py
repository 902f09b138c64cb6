"""Hadoop's keys that nothing here uses, each with the reason, and Hadoop's old names."""

from collections.abc import Mapping

_NOT_OF_FILES = (
    "nnha keeps files without it: what it would change is fixed, or not done (docs/not-here-yet.md)"
)
_SAFE_MODE_LOOKS = "safe mode is looked at once a second, and copies are made only after it"
_CLIENTS = "Hadoop's clients read it, and none of nnha's daemons does"
_NO_HTTPS = (
    "of nnha's daemons a JournalNode alone serves HTTPS; NameNode and DataNode do not start with "
    "dfs.http.policy=HTTPS_ONLY"
)
_ONE_LOOP = "one event loop serves all calls, and there are no handler threads to count"
_NO_SECONDARY = (
    "nnha has no SecondaryNameNode or BackupNode; the standby or `nnha checkpoint run` merges"
)
_OWN_ROLLING = (
    "a standby never asks for a roll: the active ends its segment by itself, every "
    "dfs.ha.log-roll.period"
)
_YARN = "YARN and Hadoop's token stores read it; the ZKFC reads ha.zookeeper.*"
_RPC_DEADLINE = (
    "each call of nnha is bounded by the time limit of its own purpose (ha.health-monitor.*, "
    "ha.failover-controller.*, dfs.qjournal.*), which includes connecting"
)
_SERVER_SOCKETS = "nnha's RPC server has limits of its own, which no key sets"
_SNAPSHOTS = (
    "a snapshot is taken and dropped at once, as with Hadoop's default, and holds files as they are"
)

_REASONS: Mapping[str, str] = {
    "it names a Java class: dfs.data.transfer.protection and dfs.encrypt.data.transfer hold for "
    "every connection": """
        dfs.data.transfer.saslproperties.resolver.class dfs.trustedchannel.resolver.class""",
    "nnha's NameNode always takes Hadoop's default": """
        dfs.corruptfilesreturned.max dfs.namenode.list.cache.directives.num.responses
        dfs.namenode.list.cache.pools.num.responses
        dfs.namenode.max-lock-hold-to-release-lease-ms""",
    _NOT_OF_FILES: """
        dfs.datanode.data.dir.perm dfs.datanode.handler.count dfs.datanode.https.address
        dfs.datanode.use.datanode.hostname
        dfs.namenode.avoid.read.stale.datanode dfs.namenode.avoid.write.stale.datanode
        dfs.namenode.blocks.per.postponedblocks.rescan
        dfs.namenode.redundancy.interval.seconds
        dfs.namenode.startup.delay.block.deletion.sec""",
    _SAFE_MODE_LOOKS: """
        dfs.namenode.replqueue.threshold-pct dfs.namenode.safemode.recheck.interval""",
    _CLIENTS: """
        dfs.client.datanode-restart.timeout dfs.client.failover.connection.retries
        dfs.client.failover.connection.retries.on.timeouts dfs.client.failover.max.attempts
        dfs.client.failover.random.order dfs.client.failover.sleep.base.millis
        dfs.client.failover.sleep.max.millis dfs.client.read.shortcircuit
        dfs.client.retry.policy.enabled dfs.client.retry.policy.spec dfs.client.socket-timeout
        dfs.client.use.datanode.hostname dfs.domain.socket.path dfs.user.home.dir.prefix
        io.compression.codecs io.serializations ipc.client.connection.maxidletime
        ipc.client.fallback-to-simple-auth-allowed ipc.client.idlethreshold ipc.client.kill.max""",
    _NO_HTTPS: """
        dfs.namenode.https-address dfs.namenode.https-bind-host
        dfs.namenode.secondary.https-address""",
    "nnha speaks TLS 1.3 alone": "hadoop.ssl.enabled.protocols",
    "no page of nnha asks for a certificate of a Java store": "hadoop.ssl.require.client.cert",
    "nnha always checks that a certificate is of the host": "hadoop.ssl.hostname.verifier",
    "nnha's pages have no filters: which of them take tickets is said by the principal that they "
    "have (dfs.web.authentication.kerberos.principal)": "hadoop.http.filter.initializers",
    "nnha's pages have no users: they are read-only": "hadoop.http.staticuser.user",
    "each request is proved anew; the cookie hadoop.auth is for the next request of Java's "
    "clients, ends after a minute, and is signed with a secret that no other process knows": """
        hadoop.http.authentication.cookie.domain hadoop.http.authentication.cookie.persistent
        hadoop.http.authentication.signature.secret.file
        hadoop.http.authentication.token.validity""",
    "no page of nnha is for a caller only because it says a name": """
        hadoop.http.authentication.simple.anonymous.allowed""",
    "nnha reads passwords from the files that its own keys name with @": """
        hadoop.security.credential.provider.path""",
    "nnha.audit.client is always written by a thread of its own": """
        dfs.namenode.audit.log.async dfs.namenode.audit.log.async.blocking
        dfs.namenode.audit.log.async.buffer.size""",
    "lines of nnha.audit.client do not have it": """
        dfs.namenode.audit.log.token.tracking.id dfs.namenode.audit.log.with.remote.port
        hadoop.caller.context.signature.max.size""",
    "it names Java classes; nnha.audit.format and nnha.audit.file set nnha's audit log": """
        dfs.namenode.audit.loggers""",
    _ONE_LOOP: """
        dfs.journalnode.handler.count dfs.namenode.handler.count dfs.namenode.lifeline.handler.count
        dfs.namenode.lifeline.handler.ratio dfs.namenode.service.handler.count""",
    _NO_SECONDARY: """
        dfs.namenode.backup.address dfs.namenode.backup.http-address dfs.namenode.checkpoint.dir
        dfs.namenode.checkpoint.edits.dir dfs.namenode.checkpoint.max-retries
        dfs.namenode.secondary.http-address""",
    "a NameNode that stops saves no image": """
        dfs.namenode.missing.checkpoint.periods.before.shutdown""",
    "an image has one format here, which `nnha oiv` reads": "dfs.namenode.legacy-oiv-image.dir",
    "`current` is made for its owner alone, with Hadoop's default of 700": """
        dfs.namenode.storage.dir.perm""",
    "an image is loaded by one thread": "dfs.image.parallel.threads",
    "an image is sent with its length, not in chunks": "dfs.image.transfer.chunksize",
    "edits are durable on the JournalNodes; a local directory that fails is dropped and reported, "
    "and dfs.namenode.edits.dir.required names those without which an active must not go on": """
        dfs.namenode.edits.dir.minimum""",
    "edits are always written while calls go on, in batches": """
        dfs.namenode.edits.asynclogging dfs.namenode.edits.asynclogging.pending.queue.size""",
    "it is for Hadoop's tests: edits are always flushed": """
        dfs.namenode.edits.noeditlogchannelflush""",
    "an edit may have 50 MiB, Hadoop's default, on JournalNodes and NameNodes alike": """
        dfs.namenode.max.op.size""",
    "the disks are looked at with each health probe": "dfs.namenode.resource.check.interval",
    "every name directory must have room, not only so many": """
        dfs.namenode.resource.checked.volumes.minimum""",
    "the standby looks every dfs.ha.tail-edits.period, without a back-off": """
        dfs.ha.tail-edits.period.backoff-max""",
    "a standby applies edits in small steps between its other work, under no lock": """
        dfs.ha.tail-edits.max-txns-per-lock""",
    _OWN_ROLLING: """
        dfs.ha.log-roll.rpc.timeout dfs.ha.tail-edits.namenode-retries
        dfs.ha.tail-edits.rolledits.timeout""",
    "a standby of nnha answers no reads, and there are no observers": """
        dfs.ha.allow.stale.reads dfs.namenode.state.context.enabled""",
    "counting a directory lets other calls in after every 5,000 inodes, Hadoop's default": """
        dfs.content-summary.limit""",
    "quotas are counted when they are needed": "dfs.namenode.quota.init-threads",
    "the retry cache has room for 200,000 answers, whatever memory there is": """
        dfs.namenode.retrycache.heap.percent""",
    _SNAPSHOTS: """
        dfs.namenode.snapshot.capture.openfiles dfs.namenode.snapshot.deletion.ordered
        dfs.namenode.snapshot.deletion.ordered.gc.period.ms
        dfs.namenode.snapshot.skip.capture.accesstime-only-change""",
    "the NameNode empties no trash: `hdfs dfs -expunge` does, for the user who runs it": """
        fs.trash.checkpoint.interval""",
    "appending to a file is always supported": "dfs.support.append",
    "buffers have sizes of their own": "dfs.stream-buffer-size",
    "an empty JournalNode is formatted and admitted by an operator, with `nnha journal`": """
        dfs.journalnode.enable.sync.format""",
    "missed segments are fetched one after the other": "dfs.qjournal.parallel-read.num-threads",
    "it names a Java class, and a name of several hosts is not resolved": """
        dfs.namenode.edits.qjournals.resolver.impl""",
    "it names a Java class; nnha's NameNode writes qjournal: by its own": """
        dfs.namenode.edits.journal-plugin.qjournal""",
    "an operation on ZooKeeper is repeated until the session is over, not so many times": """
        ha.failover-controller.active-standby-elector.zk.op.retries""",
    "a probe is one attempt; nnha.zkfc.health.refusals says how many failed ones count": """
        ha.health-monitor.rpc.connect.max.retries""",
    "an old active that does not connect is fenced, without a second attempt to ask it": """
        ha.failover-controller.graceful-fence.connection.retries""",
    "nnha has no JAAS; nnha.zookeeper.sasl.* configure SASL to ZooKeeper": """
        ha.zookeeper.client.jaas.context""",
    _YARN: """
        hadoop.zk.acl hadoop.zk.address hadoop.zk.auth hadoop.zk.num-retries
        hadoop.zk.retry-interval-ms hadoop.zk.timeout-ms""",
    "a PEM file of certificates needs no password": "hadoop.zk.ssl.truststore.password",
    _RPC_DEADLINE: """
        ipc.client.connect.max.retries ipc.client.connect.max.retries.on.timeouts
        ipc.client.connect.retry.interval ipc.client.connect.timeout ipc.client.ping
        ipc.client.rpc-timeout.ms ipc.client.tcpnodelay ipc.ping.interval""",
    _SERVER_SOCKETS: """
        ipc.maximum.response.length ipc.server.listen.queue.size ipc.server.tcpnodelay""",
}

NOT_USED: Mapping[str, str] = {
    name: reason for reason, names in _REASONS.items() for name in names.split()
}
"""Keys of Hadoop that an ordinary cluster's files contain and that nnha does not use, and why."""

NOT_USED_PREFIXES: Mapping[str, str] = {
    "dfs.namenode.edits.journal-plugin.": "it names a Java class",
}
"""The same for keys whose names end in anything."""

RENAMED: Mapping[str, str] = {
    "fs.default.name": "fs.defaultFS",
    "dfs.name.dir": "dfs.namenode.name.dir",
    "dfs.name.edits.dir": "dfs.namenode.edits.dir",
    "dfs.http.address": "dfs.namenode.http-address",
    "dfs.https.address": "dfs.namenode.https-address",
    "dfs.block.size": "dfs.blocksize",
    "dfs.federation.nameservices": "dfs.nameservices",
    "dfs.federation.nameservice.id": "dfs.nameservice.id",
    "fs.checkpoint.dir": "dfs.namenode.checkpoint.dir",
    "fs.checkpoint.period": "dfs.namenode.checkpoint.period",
    "dfs.permissions": "dfs.permissions.enabled",
    "dfs.permissions.supergroup": "dfs.permissions.superusergroup",
    "dfs.access.time.precision": "dfs.namenode.accesstime.precision",
    "dfs.safemode.threshold.pct": "dfs.namenode.safemode.threshold-pct",
    "dfs.replication.min": "dfs.namenode.replication.min",
    "dfs.encryption.key.provider.uri": "hadoop.security.key.provider.path",
    "dfs.umaskmode": "fs.permissions.umask-mode",
    "dfs.name.dir.restore": "dfs.namenode.name.dir.restore",
    "dfs.safemode.extension": "dfs.namenode.safemode.extension",
    "heartbeat.recheck.interval": "dfs.namenode.heartbeat.recheck-interval",
    "dfs.replication.pending.timeout.sec": "dfs.namenode.reconstruction.pending.timeout-sec",
    "dfs.namenode.replication.pending.timeout-sec": (
        "dfs.namenode.reconstruction.pending.timeout-sec"
    ),
    "dfs.data.dir": "dfs.datanode.data.dir",
    "dfs.datanode.max.xcievers": "dfs.datanode.max.transfer.threads",
    "slave.host.name": "dfs.datanode.hostname",
    "io.bytes.per.checksum": "dfs.bytes-per-checksum",
    "dfs.write.packet.size": "dfs.client-write-packet-size",
    "dfs.socket.timeout": "dfs.client.socket-timeout",
    "dfs.balance.bandwidthPerSec": "dfs.datanode.balance.bandwidthPerSec",
    "dfs.replication.interval": "dfs.namenode.redundancy.interval.seconds",
    "dfs.namenode.replication.interval": "dfs.namenode.redundancy.interval.seconds",
    "dfs.backup.address": "dfs.namenode.backup.address",
    "dfs.backup.http.address": "dfs.namenode.backup.http-address",
    "dfs.secondary.http.address": "dfs.namenode.secondary.http-address",
    "fs.checkpoint.edits.dir": "dfs.namenode.checkpoint.edits.dir",
    "topology.script.file.name": "net.topology.script.file.name",
    "topology.node.switch.mapping.impl": "net.topology.node.switch.mapping.impl",
}
"""Names that Hadoop has replaced: they still work, with a warning, as in Hadoop."""


def reason_not_used(name: str) -> str | None:
    """Return why nnha does not use a key of Hadoop; None for one that it uses or does not know."""
    if name in NOT_USED:
        return NOT_USED[name]
    return next((NOT_USED_PREFIXES[one] for one in NOT_USED_PREFIXES if name.startswith(one)), None)

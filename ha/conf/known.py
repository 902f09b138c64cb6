"""Hadoop's keys that nothing here reads; known, so that they are not taken for misspellings."""

_TABLE = """
dfs.block.access.token.enable dfs.blockreport.intervalMsec dfs.bytes-per-checksum
dfs.client.datanode-restart.timeout dfs.client.failover.connection.retries
dfs.client.failover.connection.retries.on.timeouts dfs.client.failover.max.attempts
dfs.client.failover.random.order
dfs.client.failover.sleep.base.millis dfs.client.failover.sleep.max.millis
dfs.client.read.shortcircuit dfs.client.retry.policy.enabled dfs.client.retry.policy.spec
dfs.client.socket-timeout dfs.client.use.datanode.hostname dfs.data.transfer.protection
dfs.datanode.address dfs.datanode.balance.bandwidthPerSec dfs.datanode.data.dir
dfs.datanode.data.dir.perm dfs.datanode.du.reserved dfs.datanode.failed.volumes.tolerated
dfs.datanode.handler.count dfs.datanode.http.address dfs.datanode.https.address
dfs.datanode.ipc.address dfs.datanode.keytab.file dfs.datanode.kerberos.principal
dfs.datanode.max.transfer.threads dfs.datanode.use.datanode.hostname dfs.domain.socket.path
dfs.encrypt.data.transfer dfs.encryption.key.provider.uri dfs.heartbeat.interval dfs.hosts
dfs.hosts.exclude dfs.internal.nameservices dfs.journalnode.https-bind-host
dfs.namenode.audit.loggers dfs.namenode.avoid.read.stale.datanode
dfs.namenode.avoid.write.stale.datanode dfs.namenode.backup.address
dfs.namenode.backup.http-address dfs.namenode.blocks.per.postponedblocks.rescan
dfs.namenode.decommission.interval dfs.namenode.delegation.key.update-interval
dfs.namenode.delegation.token.max-lifetime dfs.namenode.delegation.token.renew-interval
dfs.namenode.heartbeat.recheck-interval dfs.namenode.hosts.provider.classname
dfs.namenode.https-bind-host dfs.namenode.kerberos.internal.spnego.principal
dfs.namenode.kerberos.principal.pattern dfs.namenode.legacy-oiv-image.dir
dfs.namenode.lifeline.handler.count dfs.namenode.lifeline.handler.ratio
dfs.namenode.path.based.cache.refresh.interval.ms dfs.namenode.quota.init-threads
dfs.namenode.redundancy.interval.seconds dfs.namenode.replication.work.multiplier.per.iteration
dfs.namenode.replqueue.threshold-pct dfs.namenode.retrycache.heap.percent
dfs.namenode.safemode.recheck.interval dfs.namenode.safemode.replication.min
dfs.namenode.secondary.http-address dfs.namenode.secondary.https-address
dfs.namenode.service.handler.count dfs.namenode.snapshot.capture.openfiles
dfs.namenode.snapshot.deletion.ordered dfs.namenode.snapshot.deletion.ordered.gc.period.ms
dfs.namenode.snapshot.filesystem.limit dfs.namenode.snapshot.skip.capture.accesstime-only-change
dfs.namenode.stale.datanode.interval dfs.namenode.startup.delay.block.deletion.sec
dfs.namenode.state.context.enabled dfs.permissions dfs.stream-buffer-size dfs.support.append
dfs.umaskmode dfs.user.home.dir.prefix dfs.web.authentication.kerberos.keytab
dfs.web.authentication.kerberos.principal dfs.webhdfs.enabled
fs.permissions.umask-mode fs.protected.directories fs.trash.checkpoint.interval fs.trash.interval
ha.zookeeper.client.jaas.context
hadoop.caller.context.enabled hadoop.http.authentication.type hadoop.http.filter.initializers
hadoop.http.staticuser.user hadoop.proxyuser.hdfs.groups hadoop.proxyuser.hdfs.hosts
hadoop.rpc.protection hadoop.security.auth_to_local hadoop.security.authentication
hadoop.security.credential.provider.path hadoop.security.group.mapping
hadoop.security.key.provider.path hadoop.ssl.enabled.protocols hadoop.ssl.require.client.cert
hadoop.user.group.static.mapping.overrides hadoop.zk.acl hadoop.zk.address hadoop.zk.auth
hadoop.zk.timeout-ms hadoop.zk.retry-interval-ms hadoop.zk.num-retries
io.compression.codecs io.file.buffer.size io.serializations
ipc.client.connection.maxidletime ipc.client.fallback-to-simple-auth-allowed
ipc.client.idlethreshold ipc.client.kill.max ipc.client.ping ipc.client.rpc-timeout.ms
ipc.client.tcpnodelay ipc.maximum.response.length ipc.ping.interval ipc.server.listen.queue.size
ipc.server.tcpnodelay
net.topology.node.switch.mapping.impl net.topology.script.file.name
"""

NOT_READ = frozenset(_TABLE.split())
"""Names that an ordinary cluster's files contain and that we leave to Hadoop's own daemons."""

RENAMED = {
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
    "dfs.permissions.supergroup": "dfs.permissions.superusergroup",
    "dfs.access.time.precision": "dfs.namenode.accesstime.precision",
    "dfs.safemode.threshold.pct": "dfs.namenode.safemode.threshold-pct",
    "dfs.replication.min": "dfs.namenode.replication.min",
}
"""Names that Hadoop has replaced: they still work, with a warning, as in Hadoop."""

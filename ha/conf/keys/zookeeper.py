"""The keys of TLS, SASL and ACLs for ZooKeeper, and of what happens when it is unreachable."""

from ha.conf.keys.key import Key, Scope
from ha.conf.keys.units import duration, flag, optional_text, text

_G, _NN = Scope.GLOBAL, Scope.NAMENODE

# --- TLS (Hadoop's names where it has one: HADOOP-18709) ---------------------------------------
TLS = Key("hadoop.zk.ssl.enabled", flag, "false", _G, "TLS to ZooKeeper")
TLS_OF_ZKFC = Key("dfs.ha.zkfc.client.ssl.enabled", flag, "false", _G, "TLS, older name")
KEYSTORE = Key(
    "hadoop.zk.ssl.keystore.location",
    optional_text,
    "",
    _G,
    "PEM file with our certificate chain and, unless it has a file of its own, our private key",
)
KEYSTORE_PASSWORD = Key(
    "hadoop.zk.ssl.keystore.password", text, "", _G, "of the private key, or @file"
)
TRUSTSTORE = Key(
    "hadoop.zk.ssl.truststore.location",
    optional_text,
    "",
    _G,
    "PEM file with the certificates of the authorities that ZooKeeper's servers are checked by; "
    "the system's own when not set",
)
PRIVATE_KEY = Key(
    "nnha.zookeeper.ssl.private-key.location",
    optional_text,
    "",
    _G,
    "PEM file with our private key, where the key store holds only certificates",
)
CHECK_HOST_NAME = Key(
    "nnha.zookeeper.ssl.check-host-name",
    flag,
    "true",
    _G,
    "a server's certificate must name the host that ha.zookeeper.quorum calls it by",
)

# --- SASL ------------------------------------------------------------------------------------
SASL_MECHANISM = Key(
    "nnha.zookeeper.sasl.mechanism",
    optional_text,
    "",
    _G,
    "GSSAPI or DIGEST-MD5; not set: no SASL.  Needs the Python package pure-sasl",
)
SASL_SERVICE = Key(
    "nnha.zookeeper.sasl.service", text, "zookeeper", _G, "the servers' Kerberos service name"
)
SASL_PRINCIPAL = Key(
    "nnha.zookeeper.sasl.principal", optional_text, "", _NN, "ours, for GSSAPI; else the ticket's"
)
SASL_USER = Key("nnha.zookeeper.sasl.user", optional_text, "", _NN, "our name, for DIGEST-MD5")
SASL_PASSWORD = Key(
    "nnha.zookeeper.sasl.password", text, "", _NN, "our password for DIGEST-MD5, or @file"
)

# --- policy ----------------------------------------------------------------------------------
OPEN_ACL = Key(
    "nnha.zookeeper.open-acl",
    text,
    "warn",
    _NN,
    "warn, refuse or allow an ACL by which anybody may write or delete the election's znodes; not "
    "set: by nnha.security.mode",
)
STEP_DOWN_AFTER = Key(
    "nnha.zkfc.zookeeper-loss.step-down-after",
    duration("s"),
    "0",
    _NN,
    "how long an active may serve while no ZooKeeper answers its ZKFC, before the ZKFC makes it "
    "standby; 0: for ever, as in Hadoop",
)

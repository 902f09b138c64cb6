"""The settings of the ZooKeeper session, from the configuration."""

import os
import stat
from pathlib import Path

from ha.conf.configuration import Configuration
from ha.conf.errors import ConfigurationError
from ha.conf.keys import cluster as keys
from ha.conf.keys import zookeeper as keys_zookeeper
from ha.conf.keys.key import Key
from ha.conf.keys.security import SECURITY_MODE, Mode
from ha.elector.model import BREADCRUMB_ZNODE, COUNT_ZNODE, LOCK_ZNODE, TERM_ZNODE
from ha.elector.zookeeper import credentials
from ha.elector.zookeeper.errors import BadCredentialSetting
from ha.elector.zookeeper.sasl import Sasl
from ha.elector.zookeeper.tls import Tls, context_of
from ha.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperSettings:
    """The ensemble, the session and the znodes of one nameservice."""

    hosts: str
    session_timeout_seconds: float
    scope: str
    """The path of this nameservice's znode, including a chroot, e.g. ``/hadoop-ha/ns1``."""
    acl: tuple[credentials.AclEntry, ...] = (credentials.CREATOR_ALL,)
    auth: tuple[credentials.AuthEntry, ...] = ()
    tls: Tls | None = None
    sasl: Sasl | None = None
    warning: str = ""
    """A warning to operators about these settings."""

    def __post_init__(self) -> None:
        if not self.hosts:
            raise ConfigurationError(
                "ha.zookeeper.quorum is not set; name the ensemble as host:port,host:port,..."
            )
        if self.session_timeout_seconds <= 0:
            raise ConfigurationError("ha.zookeeper.session-timeout.ms must be greater than 0")
        if not self.scope.startswith("/"):
            raise ConfigurationError(
                f"ha.zookeeper.parent-znode must start with a slash; found {self.scope!r}"
            )

    @property
    def lock(self) -> str:
        """The lock's path."""
        return f"{self.scope}/{LOCK_ZNODE}"

    @property
    def breadcrumb(self) -> str:
        """The breadcrumb's path."""
        return f"{self.scope}/{BREADCRUMB_ZNODE}"

    @property
    def term(self) -> str:
        """The path of the record about the breadcrumb's owner."""
        return f"{self.scope}/{TERM_ZNODE}"

    @property
    def count(self) -> str:
        """The path of the znode whose version counts the locks that nnha's ZKFCs have created."""
        return f"{self.scope}/{COUNT_ZNODE}"

    @property
    def request_deadline_seconds(self) -> float:
        """The limit for a request: a third of the session timeout, so that it ends before that."""
        return max(0.5, self.session_timeout_seconds / 3)

    @property
    def connect_cap_seconds(self) -> float:
        """The limit for a connection attempt: after two dead servers a third must get its turn."""
        return max(0.2, self.session_timeout_seconds / 6)

    @property
    def handshake_cap_seconds(self) -> float:
        """The limit for the server's answer to the handshake, after it has accepted a connection.

        A server that has just started may never answer; kazoo would wait for the whole session
        timeout, after which the session has expired.
        """
        return max(0.5, self.session_timeout_seconds / 4)


def zookeeper_settings(
    conf: Configuration, *, nameservice: str, namenode: str | None = None
) -> ZooKeeperSettings:
    """Read the ha.zookeeper.* keys.  Raises ConfigurationError with the bad key."""
    quorum = conf.get(keys.ZOOKEEPER_QUORUM, nameservice=nameservice, namenode=namenode)
    timeout = conf.get(keys.ZOOKEEPER_SESSION_TIMEOUT, nameservice=nameservice, namenode=namenode)
    parent = conf.get(keys.ZOOKEEPER_PARENT, nameservice=nameservice, namenode=namenode)
    chroot = quorum.chroot if parent.startswith("/") else ""  # the settings refuse it without one
    auth = conf.get(keys.ZOOKEEPER_AUTH, nameservice=nameservice, namenode=namenode)
    policy = conf.get(keys_zookeeper.OPEN_ACL, nameservice=nameservice, namenode=namenode)
    mode = conf.get(SECURITY_MODE)
    try:
        shown = credentials.parse_auth(_indirect(auth, mode))
        tls, sasl = _tls(conf, mode), _sasl(conf, nameservice, namenode, mode)
        proven = bool(shown or sasl or (tls and tls.certificate))
        entries = _acl(conf, nameservice, namenode, mode, proven=proven)
        return ZooKeeperSettings(
            hosts=",".join(map(str, quorum.servers)),
            session_timeout_seconds=timeout,
            scope=f"{chroot}{parent.rstrip('/')}/{nameservice}",
            acl=entries,
            auth=shown,
            tls=tls,
            sasl=sasl,
            warning=_open_acl(entries, policy),
        )
    except BadCredentialSetting as failure:
        raise ConfigurationError(str(failure)) from failure


def _acl(
    conf: Configuration, nameservice: str, namenode: str | None, mode: Mode, *, proven: bool
) -> tuple[credentials.AclEntry, ...]:
    """Return the ACL for new znodes; the default with credentials is the creator's (``auth::``).

    Hadoop's default is open to all clients, also with credentials.  The security modes that must
    not change a running cluster keep that.
    """
    whose = {"nameservice": nameservice, "namenode": namenode}
    named = conf.is_set(keys.ZOOKEEPER_ACL, **whose)
    if proven and not named and mode in (Mode.AUTO, Mode.STRICT):
        return (credentials.CREATOR_ALL,)
    return credentials.parse_acl(_indirect(conf.get(keys.ZOOKEEPER_ACL, **whose), mode)) or (
        credentials.CREATOR_ALL,
    )


def _open_acl(acl: tuple[credentials.AclEntry, ...], policy: str) -> str:
    """Return a warning if the ACL is open; raises ConfigurationError if the policy refuses that.

    See docs/reference/election.md#acls-and-credentials.
    """
    if policy not in ("warn", "refuse", "allow"):
        raise ConfigurationError(
            f"{keys_zookeeper.OPEN_ACL.name} is {policy!r}; it must be warn, refuse or allow"
        )
    if policy == "allow" or not credentials.open_to_all(acl):
        return ""
    text = (
        f"{keys.ZOOKEEPER_ACL.name} lets anybody who reaches ZooKeeper delete the lock of the "
        f"election or write the breadcrumb; set it to auth::rwcda, with {keys.ZOOKEEPER_AUTH.name} "
        f"or a client certificate, or accept it with {keys_zookeeper.OPEN_ACL.name}=allow"
    )
    if policy == "refuse":
        raise ConfigurationError(text)
    return text


def _tls(conf: Configuration, mode: Mode) -> Tls | None:
    if not (conf.get(keys_zookeeper.TLS) or conf.get(keys_zookeeper.TLS_OF_ZKFC)):
        return None

    def path(key: Key[str | None]) -> Path | None:
        named = conf.get(key)
        return None if named is None else Path(named)

    tls = Tls(
        trusted=path(keys_zookeeper.TRUSTSTORE),
        certificate=path(keys_zookeeper.KEYSTORE),
        private_key=path(keys_zookeeper.PRIVATE_KEY),
        password=_indirect(conf.get(keys_zookeeper.KEYSTORE_PASSWORD), mode),
        check_host_name=conf.get(keys_zookeeper.CHECK_HOST_NAME),
    )
    # A bad file is reported at the start, not as a lost connection later.
    context_of(tls)
    return tls


def _sasl(conf: Configuration, nameservice: str, namenode: str | None, mode: Mode) -> Sasl | None:
    mechanism = conf.get(keys_zookeeper.SASL_MECHANISM)
    if mechanism is None:
        return None
    whose = {"nameservice": nameservice, "namenode": namenode}
    sasl = Sasl(
        mechanism=mechanism,
        service=conf.get(keys_zookeeper.SASL_SERVICE),
        principal=conf.get(keys_zookeeper.SASL_PRINCIPAL, **whose),
        user=conf.get(keys_zookeeper.SASL_USER, **whose),
        password=_indirect(conf.get(keys_zookeeper.SASL_PASSWORD, **whose), mode),
    )
    sasl.options()
    return sasl


def _indirect(value: str, mode: Mode) -> str:
    """Return the value, or for ``@/path`` the file's text, so that no secret is in the XML.

    In the mode ``strict`` only the file's owner may have rights on it.
    """
    if not value.startswith("@"):
        return value
    path = Path(value[1:])
    try:
        with path.open(encoding="utf-8") as file:
            # fstat, not stat: another file may have been renamed to the path since it was opened.
            bits = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode is Mode.STRICT and bits & (stat.S_IRWXG | stat.S_IRWXO):
                raise ConfigurationError(
                    f"{path}: its mode is {bits:04o}, and {SECURITY_MODE.name}={mode} takes "
                    f"ZooKeeper credentials only from files of their owner alone: "
                    f"chmod 600 {path}"
                )
            return file.read().strip()
    except OSError as failure:
        raise ConfigurationError(
            f"{path}: cannot read the ZooKeeper credentials named with @: {failure.strerror}"
        ) from failure
    except ValueError as failure:  # the message must not contain the secret
        raise ConfigurationError(
            f"{path}: cannot read the ZooKeeper credentials named with @: they are no UTF-8 text"
        ) from failure

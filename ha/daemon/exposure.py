"""Which hosts can reach a daemon, and what proves a caller: decided before anything listens.

On this machine the kernel identifies the process at the other end, and certificates do everywhere.
A daemon without them that listens elsewhere than on loopback does not start before an operator has
confirmed that this is known (``nnha.security.mode``).
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog

from ha.conf.configuration import Configuration
from ha.conf.errors import ConfigurationError
from ha.conf.hazards import Daemon
from ha.conf.keys import cluster as keys
from ha.conf.keys import datanode as keys_datanode
from ha.conf.keys import journal as keys_journal
from ha.conf.keys.cluster import NAMESERVICES, ZKFC_HTTP
from ha.conf.keys.security import (
    AUDIT_FILE,
    AUDIT_FORMAT,
    AUTHENTICATION,
    AUTHORIZATION,
    ENCRYPT_DATA_TRANSFER,
    HTTP_AUTHENTICATION,
    HTTP_POLICY,
    SECURITY_MODE,
    SIMPLE_CLIENTS,
    TLS_DIR,
    Mode,
    https_only,
)
from ha.conf.keys.web import WEB_HOSTS
from ha.conf.listening import BIND_HOSTS, Door, elsewhere, is_loopback, named_hosts
from ha.conf.topology import local_namenode, namenode_ids
from ha.daemon.process import ExitWith
from ha.security.access_control import AccessControl
from ha.security.audit import AuditLog
from ha.security.caller import Role
from ha.security.own_tls import act_as, ask_pages_as_configured, configured
from ha.security.peer_uid import is_told

if TYPE_CHECKING:
    from ha.security.kerberos.own import OwnKerberos
    from ha.security.sasl.way import Way
    from ha.security.tls_files import TlsFiles

log = structlog.get_logger()

OPEN_TO_STRANGERS: Final = 78
"""Exit code of a daemon that would be open to strangers (EX_CONFIG): a person must decide, so a
supervisor should not start it again (systemd: RestartPreventExitStatus)."""

ADVICE: Final = (
    f"set {SECURITY_MODE.name}={Mode.STRICT} with certificates ({TLS_DIR.name}), or "
    f"{Mode.INSECURE} where only trusted hosts reach the ports; or set the address itself to one "
    "of this host that others reach"
)
OF_PEERS: Final = frozenset(
    key.name for key in BIND_HOSTS if key not in (keys_datanode.HTTP, ZKFC_HTTP)
)
"""Listeners that other hosts need: not the pages of DataNode and ZKFC, which are for operators."""

_PAGES: Final = frozenset(
    key.name
    for key in (
        keys.NAMENODE_HTTP, keys_journal.HTTP, keys_journal.HTTPS, keys_datanode.HTTP, ZKFC_HTTP,
    )
)  # fmt: skip
NEED_PAGES: Final = frozenset({Daemon.NAMENODE, Daemon.JOURNALNODE})

_BELIEVED: Final = "whoever reaches a port is believed; calls and pages are not encrypted"
_BY_KERNEL: Final = (
    "callers on this machine are who the kernel says; root and the daemon's own user may do "
    "everything, others what clients may"
)


_BY_CERTIFICATE: Final = (
    "callers with a certificate are who it says, over TLS; callers without one on this machine are "
    "who the kernel says"
)
_ROLES: Final = {
    Daemon.NAMENODE: Role.NAMENODE,
    Daemon.DATANODE: Role.DATANODE,
    Daemon.JOURNALNODE: Role.JOURNALNODE,
    Daemon.ZKFC: Role.ZKFC,
    Daemon.CHECKPOINT: Role.CHECKPOINTER,
    Daemon.WEB: Role.OPERATOR,
}


def check_exposure(
    configuration: Configuration,
    daemon: Daemon,
    doors: Sequence[Door],
    *,
    kernel_reports_uids: Callable[[], bool] = is_told,
) -> AccessControl:
    """Log the mode and what it proves; refuse to listen where it cannot hold.

    Nothing listens yet, and nothing was written.  The daemon's access holds all its doors.

    Raises:
        ConfigurationError: for a mode that there is not.
        ExitWith: 78, with what to do.
    """
    mode = configuration.get(SECURITY_MODE)
    reachable = [str(door) for door in doors if not is_loopback(door.host)]
    tls = certificates(configuration, _ROLES[daemon])
    own = log_in_as(configuration, daemon)
    pages = tickets_on_pages(configuration, daemon, own)
    guarded = frozenset[str]()
    if own is not None:
        guarded = by_tickets(configuration) | (_PAGES if pages is not None else frozenset())
    open_doors = [
        str(door) for door in doors if not is_loopback(door.host) and door.key not in guarded
    ]
    if open_doors and tls is None and mode in (Mode.AUTO, Mode.STRICT):
        raise ExitWith(OPEN_TO_STRANGERS, _reachable(open_doors, mode, daemon))
    told = mode is not Mode.INSECURE and kernel_reports_uids()
    if not told and tls is None and mode in (Mode.AUTO, Mode.STRICT):
        raise ExitWith(OPEN_TO_STRANGERS, _callers_unknown(mode))
    tell = log.warning if mode in (Mode.INSECURE, Mode.PERMISSIVE) else log.info
    tell(
        "security.mode",
        mode=mode.value,
        daemon=daemon.value,
        reachable=reachable,
        meaning=_meaning(mode, told=told, certificates=tls is not None),
        certificate=None if tls is None else tls.material.name.uri,
        principal=None if own is None else own.principal,
    )
    _log_doors(configuration, daemon, doors)
    act_as(tls, mode)
    file = configuration.get(AUDIT_FILE)
    audit = AuditLog(configuration.get(AUDIT_FORMAT), Path(file) if file else None)
    place = f"{doors[0].host}:{doors[0].port}" if doors else "none"
    access = AccessControl(
        mode,
        target=f"{daemon.value}@{place}",
        audit=audit,
        kernel_reports_uids=told,
        tls=tls,
        hosts=(*configuration.get(WEB_HOSTS), *named_hosts(configuration)),
        simple_clients=own is None and configuration.get(SIMPLE_CLIENTS),
        namenodes=_namenodes(configuration),
    )
    let_in_by_lists(access, configuration, own)
    access.web_way = pages
    serve_https(access, configuration, daemon)
    return access


def serve_https(access: AccessControl, configuration: Configuration, daemon: Daemon) -> None:
    """Have a JournalNode serve and fetch segments by HTTPS alone, where dfs.http.policy says so.

    Raises ConfigurationError where there is no certificate for that.
    """
    if daemon is not Daemon.JOURNALNODE:
        return
    ask_pages_as_configured(configuration)
    if https_only(configuration.get(HTTP_POLICY)):
        from ha.security.page_store import page_certificate

        access.https = page_certificate(configuration, access.tls)


def let_in_by_lists(
    access: AccessControl, configuration: Configuration, own: "OwnKerberos | None"
) -> None:
    """Take callers' tickets, and hold them to the operator's lists.  Raises ConfigurationError."""
    if own is None and not configuration.get(AUTHORIZATION):
        return
    from ha.security.kerberos.settings import accepting, admission

    access.admission = admission(configuration, own)
    if own is not None and own.keytab is not None and access.admission is not None:
        access.ways = (accepting(own, access.admission),)


def tickets_on_pages(
    configuration: Configuration, daemon: Daemon, own: "OwnKerberos | None"
) -> "Way | None":
    """Return the way in which requests for pages prove themselves by tickets; None: they cannot.

    A NameNode and a JournalNode, whose images and segments others fetch, do not start without the
    key of their pages; others go on without tickets there, as Hadoop's need no such key.

    Raises:
        ConfigurationError: a principal is configured for pages, and there is no key of it; or
            hadoop.http.authentication.type is kerberos, and nothing else is.
    """
    if own is None:
        if daemon in NEED_PAGES and configuration.get(HTTP_AUTHENTICATION).lower() == "kerberos":
            raise ConfigurationError(
                f"{configuration.where(HTTP_AUTHENTICATION)} is kerberos, but "
                f"{AUTHENTICATION.name} is not: nnha's pages take tickets where its RPC does. Set "
                "both."
            )
        return None
    from ha.security.kerberos.settings import accepting_on_pages

    conf = _of_this_namenode(configuration, daemon)
    try:
        return accepting_on_pages(conf, own, _ROLES[daemon])
    except ConfigurationError as failure:
        if daemon in NEED_PAGES:
            raise
        log.warning("kerberos.no_key_of_pages", daemon=daemon.value, because=str(failure))
        return None


def _of_this_namenode(configuration: Configuration, daemon: Daemon) -> Configuration:
    """Return the configuration as a NameNode of this machine, or its ZKFC, has it."""
    if daemon not in (Daemon.NAMENODE, Daemon.ZKFC):
        return configuration
    here = local_namenode(configuration)
    return configuration.scoped(here.nameservice, here.namenode)


def refresh_lists(access: AccessControl | None, configuration: Configuration) -> bool:
    """Read proxy users and access lists anew; return whether there are access lists.

    Connections that are open stay as they were let in.  Raises ConfigurationError, and changes
    nothing, where a file cannot be read or the lists were switched on or off.
    """
    fresh = configuration if configuration.again is None else configuration.again()
    if fresh.get(AUTHORIZATION) != configuration.get(AUTHORIZATION):
        raise ConfigurationError(
            f"{fresh.where(AUTHORIZATION)} is another than at the start; nothing was changed. "
            "Restart the daemon, or set it back."
        )
    if access is not None and access.admission is not None:
        from ha.security.kerberos.own import own_kerberos
        from ha.security.kerberos.settings import admission

        access.admission = admission(fresh, own_kerberos()) or access.admission
    return bool(fresh.get(AUTHORIZATION))


def log_in_as(configuration: Configuration, daemon: Daemon) -> "OwnKerberos | None":
    """Log this process in, if it is to use Kerberos.  Raises ConfigurationError where it cannot."""
    if configuration.get(AUTHENTICATION).lower() != "kerberos":
        return None
    if configuration.get(keys_datanode.BLOCK_TOKENS) is False:
        raise ConfigurationError(
            f"{configuration.where(keys_datanode.BLOCK_TOKENS)} is false, but with Kerberos block "
            "tokens must keep strangers out of the data. Set it to true, or unset it."
        )
    from ha.security.kerberos.own import log_in
    from ha.security.kerberos.settings import daemon_login, login, name_rules

    conf = _of_this_namenode(configuration, daemon)
    if daemon in (Daemon.WEB, Daemon.CHECKPOINT):  # they may run where no NameNode's keys are
        own = login(conf, name_rules(conf))
    else:
        own = daemon_login(conf, _ROLES[daemon])
    log_in(own)
    return own


def by_tickets(configuration: Configuration) -> frozenset[str]:
    """Return the keys of listeners where Kerberos, or a token for a block, proves who calls."""
    rpc = (
        keys.NAMENODE_RPC, keys.NAMENODE_SERVICE_RPC, keys.NAMENODE_LIFELINE_RPC, keys.ZKFC_PORT,
        keys_datanode.RPC, keys_journal.HADOOP_RPC,
    )  # fmt: skip
    proving = (keys_datanode.BLOCK_TOKENS, ENCRYPT_DATA_TRANSFER)
    blocks = (keys_datanode.DATA,) if any(map(configuration.get, proving)) else ()
    return frozenset(key.name for key in (*rpc, *blocks))


def _log_doors(conf: Configuration, daemon: Daemon, doors: Sequence[Door]) -> None:
    """Log where the daemon will listen and why; warn where its peers cannot reach it."""
    chosen = {door.key: f"{door.address} ({door.why})" for door in doors if door.why}
    log.info("daemon.listens", daemon=daemon.value, **chosen)
    hidden = [str(door) for door in doors if door.key in OF_PEERS and _is_hidden(door)]
    if hidden and (other := elsewhere(conf)) is not None:
        log.warning(
            "daemon.unreachable",
            daemon=daemon.value,
            doors=hidden,
            peer=other,
            meaning="these addresses are reached from this machine only, and the configuration "
            "names other machines",
            do=ADVICE,
        )


def _is_hidden(door: Door) -> bool:
    return is_loopback(door.host, unknown=False)


def certificates(configuration: Configuration, role: Role) -> "TlsFiles | None":
    """Return the certificates of a daemon of that role, None where no TLS is configured.

    Raises:
        ExitWith: 78 where they are configured and cannot be used.
    """
    if configuration.get(TLS_DIR) is None:
        return None
    try:
        from ha.security.tls_files import NoCertificates
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "cryptography":
            raise
        raise ExitWith(
            OPEN_TO_STRANGERS,
            f"refused to start: {TLS_DIR.name} is set, and certificates need {missing.name}: pip "
            "install 'nnha[tls]'. Nothing was changed.",
        ) from missing

    try:
        return configured(configuration, role)
    except NoCertificates as missing:
        raise ExitWith(
            OPEN_TO_STRANGERS, f"refused to start: {missing}. Nothing was changed."
        ) from missing


def _namenodes(configuration: Configuration) -> frozenset[str] | None:
    """Return the ids of all NameNodes; None where the configuration does not name them."""
    found: set[str] = set()
    for nameservice in configuration.get(NAMESERVICES):
        try:
            found.update(namenode_ids(configuration, nameservice))
        except ConfigurationError:
            return None
    return frozenset(found) or None


def _meaning(mode: Mode, *, told: bool, certificates: bool) -> str:
    match mode:
        case Mode.PERMISSIVE if certificates:
            return f"{_BY_CERTIFICATE}; who proves nothing is let in and counted"
        case Mode.AUTO if certificates:
            return _BY_CERTIFICATE
        case Mode.STRICT if certificates:
            return (
                "callers are who their certificate says, over TLS; the kernel's word for a local "
                "user makes a client of it and nothing more"
            )
        case Mode.INSECURE:
            return _BELIEVED
        case Mode.PERMISSIVE:
            here = _BY_KERNEL if told else "the kernel does not tell here who calls"
            return (
                f"{here}; from other machines nothing proves who calls yet, so they are let in and "
                "counted; calls and pages are not encrypted"
            )
        case Mode.STRICT:
            return f"{_BY_KERNEL}; without certificates this is the same as {Mode.AUTO}"
        case Mode.AUTO:
            return _BY_KERNEL


def _reachable(doors: Sequence[str], mode: Mode, daemon: Daemon) -> str:
    what = "is" if len(doors) == 1 else "are"
    demanded = f", which {mode} demands" if mode is Mode.STRICT else ""
    return (
        f"refused to start: {' and '.join(doors)} {what} reachable from other machines, and "
        f"nothing proves who calls from there{demanded}. Make certificates (nnha security init "
        f"--dir CA && nnha security issue {_ROLES[daemon]} NAME --host HOST --dir CA --out DIR/"
        f"{_ROLES[daemon]}) and set {TLS_DIR.name}=DIR; or listen on this machine only, with an "
        "address or a bind-host such as 127.0.0.1; or let only trusted hosts reach the port and "
        "say so in the configuration: "
        f"{SECURITY_MODE.name}={Mode.INSECURE}, or {Mode.PERMISSIVE}, which holds callers on this "
        "machine to their rights and counts the others. Nothing was changed."
    )


def _callers_unknown(mode: Mode) -> str:
    return (
        f"refused to start: {SECURITY_MODE.name}={mode} takes callers for who the kernel says they "
        "are, and the kernel does not tell it here: neither by NETLINK_SOCK_DIAG nor in "
        "/proc/net/tcp. A sandbox may forbid both; allow one of them, or say that callers are "
        f"believed: {SECURITY_MODE.name}={Mode.PERMISSIVE}. Nothing was changed."
    )

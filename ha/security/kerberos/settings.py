"""What a configuration says of Kerberos: our own name, and those of servers and callers."""

import socket
from functools import partial
from pathlib import Path
from typing import Final

from ha.conf.configuration import Configuration, nodes_of
from ha.conf.errors import ConfigurationError
from ha.conf.keys import cluster, datanode, journal
from ha.conf.keys import kerberos as keys
from ha.conf.keys.security import AUTHORIZATION, HTTP_AUTHENTICATION
from ha.conf.listening import journalnodes, own_name
from ha.conf.reader import read_settings
from ha.security.caller import Method, Role
from ha.security.kerberos.admission import HOST, Admission, ServicePrincipal, is_address
from ha.security.kerberos.auth_to_local import BadRules, NameRules, parse_rules
from ha.security.kerberos.own import OwnKerberos
from ha.security.lists.access_list import AccessList
from ha.security.lists.proxy_users import PREFIX
from ha.security.sasl import gss
from ha.security.sasl.kerberos import MECHANISM, KerberosAcceptor
from ha.security.sasl.mechanism import Protection
from ha.security.sasl.spnego import MECHANISM as SPNEGO
from ha.security.sasl.spnego import SpnegoAcceptor
from ha.security.sasl.way import Way

POLICY_FILE: Final = "hadoop-policy.xml"
_NAMENODE: Final = (keys.NAMENODE_PRINCIPAL, keys.NAMENODE_KEYTAB)
_KEYS: Final = {
    Role.JOURNALNODE: (keys.JOURNALNODE_PRINCIPAL, keys.JOURNALNODE_KEYTAB),
    Role.DATANODE: (keys.DATANODE_PRINCIPAL, keys.DATANODE_KEYTAB),
}
"""Of all others they are a NameNode's, as in Hadoop."""
_WEB: Final = {
    Role.NAMENODE: keys.NAMENODE_WEB_PRINCIPAL,
    Role.JOURNALNODE: keys.JOURNALNODE_WEB_PRINCIPAL,
}
_ANY_HOST: Final = f"HTTP/{HOST}"
ANY_NAME: Final = "*"
"""As dfs.web.authentication.kerberos.principal: each name of the keytab, in Hadoop."""


def name_rules(conf: Configuration) -> NameRules:
    """Return the rules for short names; raise ConfigurationError."""
    try:
        realm = gss.default_realm()
        rules = conf.get(keys.AUTH_TO_LOCAL) or "DEFAULT"
        return parse_rules(rules, conf.get(keys.AUTH_TO_LOCAL_MECHANISM), realm)
    except BadRules as failure:
        where = conf.where(keys.AUTH_TO_LOCAL)
        raise ConfigurationError(f"{where} cannot be used: {failure}") from failure
    except gss.GssError as failure:
        raise ConfigurationError(f"/etc/krb5.conf: no default_realm: {failure}") from failure


def daemon_login(conf: Configuration, role: Role) -> OwnKerberos:
    """Return how a daemon logs in; its first tickets are fetched with the first call.

    Raises:
        ConfigurationError: principal or keytab is not set, or the keytab does not have its key.
    """
    rules, (principal_key, keytab_key) = name_rules(conf), _KEYS.get(role, _NAMENODE)
    text, keytab = conf.require(principal_key) or "", conf.require(keytab_key) or ""
    if HOST in text:
        text = text.replace(HOST, _own_host(conf, role).lower())
    principal = _with_realm(text, rules.realm)
    try:
        gss.Credentials.to_accept(principal, keytab)
    except gss.GssError as failure:
        raise ConfigurationError(
            f"{conf.where(keytab_key)} is {keytab}, but with it this daemon cannot be "
            f"{principal}: {failure}. `klist -k {keytab}` shows what is in it; the file must be "
            "readable by the daemon's user."
        ) from failure
    return login(conf, rules, principal, keytab)


def login(
    conf: Configuration, rules: NameRules, principal: str | None = None, keytab: str | None = None
) -> OwnKerberos:
    """Return how this process calls; without a keytab, with the tickets of a person."""
    wanted = tuple(map(Protection, conf.get(keys.RPC_PROTECTION)))
    pattern = conf.get(keys.PRINCIPAL_PATTERN) or ""
    known, data = services(conf, rules.realm), conf.get(keys.DATA_PROTECTION) or ()
    chosen, pages = tuple(map(Protection, data)), web_principal(conf, None)
    web = "" if pages is None else _with_realm(pages[0], rules.realm)
    aes = conf.get(keys.CIPHER_SUITES) is not None
    return OwnKerberos(principal, keytab, rules, wanted, known, pattern, chosen, aes, web)


def accepting(own: OwnKerberos, admission: Admission) -> Way:
    """Return the way in which callers prove themselves by tickets for this daemon."""
    assert own.principal is not None
    assert own.keytab is not None
    # Made once: the library looks into the file for each caller, so new keys need no restart.
    credentials = gss.Credentials.to_accept(own.principal, own.keytab)
    name = own.principal.rpartition("@")[0]
    protocol, _, host = name.partition("/")
    make = partial(KerberosAcceptor, credentials, own.wanted)
    return Way(Method.KERBEROS, MECHANISM, protocol, host, make, admission.user_of)


def web_principal(conf: Configuration, role: Role | None) -> tuple[str, str | None] | None:
    """Return the principal of a daemon's pages, as configured, and its keytab, if it has another.

    As DFSUtil.getSpnegoKeytabKey and hdfs-default.xml choose them.  ``role`` None: of anybody's.
    None: there is none, and pages take no tickets.
    """
    special = None if role is None or role not in _WEB else conf.get(_WEB[role])
    name, keytab = special or conf.get(keys.WEB_PRINCIPAL), conf.get(keys.WEB_KEYTAB)
    if name is None and conf.get(HTTP_AUTHENTICATION).lower() == "kerberos":
        name, keytab = conf.get(keys.PAGES_PRINCIPAL), conf.get(keys.PAGES_KEYTAB)
    return None if name is None else (_ANY_HOST if name == ANY_NAME else name, keytab)


def accepting_on_pages(conf: Configuration, own: OwnKerberos, role: Role) -> Way | None:
    """Return the way in which requests prove themselves by tickets; None: they cannot.

    Raises:
        ConfigurationError: the keytab does not have the key of the pages' principal.
    """
    found = web_principal(conf, role)
    if found is None or own.keytab is None:
        return None
    text, keytab = found[0], found[1] or own.keytab
    if HOST in text:
        text = text.replace(HOST, _own_host(conf, role).lower())
    principal = _with_realm(text, own.rules.realm)
    try:
        credentials = gss.Credentials.to_accept_on_pages(principal, keytab)
    except gss.GssError as failure:
        raise ConfigurationError(
            f"{keytab} does not have the key of {principal}, with which this daemon's pages take "
            f"tickets: {failure}. `klist -k {keytab}` shows what is in it; see "
            f"{keys.WEB_PRINCIPAL.name} and {keys.WEB_KEYTAB.name}."
        ) from failure
    protocol, _, host = principal.rpartition("@")[0].partition("/")
    make, user_of = partial(SpnegoAcceptor, credentials), Admission(own.rules).user_of
    return Way(Method.KERBEROS, SPNEGO, protocol, host, make, user_of)


def admission(conf: Configuration, own: OwnKerberos | None) -> Admission | None:
    """Return the lists by which callers are let in; None where there are none.

    Raises ConfigurationError for a hadoop-policy.xml that cannot be read.
    """
    policy = service_policy(conf)
    if own is None:
        return None if policy is None else Admission(policy=policy)
    return Admission(
        own.rules,
        services(conf, own.rules.realm),
        own.user,
        AccessList.parse(conf.get(cluster.ADMINISTRATORS)),
        {name: conf.raw(name) or "" for name in conf.settings if name.startswith(PREFIX)},
        policy,
    )


def service_policy(conf: Configuration) -> dict[str, str] | None:
    """Return the lists of hadoop-policy.xml; None where hadoop.security.authorization is off."""
    if not conf.get(AUTHORIZATION):
        return None
    texts = {name: conf.raw(name) or "" for name in conf.settings if name.startswith("security.")}
    path = None if conf.folder is None else Path(conf.folder) / POLICY_FILE
    if path is not None and path.exists():
        texts |= {one.name: one.value for one in read_settings(path)}
    return texts


def services(conf: Configuration, realm: str) -> tuple[ServicePrincipal, ...]:
    """Return the principals of all nodes, as the configuration names them."""
    anywhere, journal_hosts = None, frozenset(one.host.lower() for one in journalnodes(conf))
    found: list[tuple[str | None, frozenset[str] | None, tuple[Role, ...]]] = [
        (conf.get(keys.JOURNALNODE_PRINCIPAL), journal_hosts, (Role.JOURNALNODE,)),
        (conf.get(keys.DATANODE_PRINCIPAL), anywhere, (Role.DATANODE,)),
    ]
    for nameservice, ids in nodes_of(conf).items():
        for one in ids:
            scope = {"nameservice": nameservice, "namenode": one}
            address = conf.get(cluster.NAMENODE_RPC, **scope)
            hosts = frozenset[str]() if address is None else frozenset({address.host.lower()})
            roles = (Role.NAMENODE, Role.ZKFC)
            found.append((conf.get(keys.NAMENODE_PRINCIPAL, **scope), hosts, roles))
    return tuple(
        ServicePrincipal(_with_realm(text, realm), hosts, frozenset(roles))
        for text, hosts, roles in found
        if text is not None
    )


def _with_realm(principal: str, realm: str) -> str:
    return principal if "@" in principal else f"{principal}@{realm}"


def _own_host(conf: Configuration, role: Role) -> str:
    """Return what _HOST stands for; raise ConfigurationError where that is no name."""
    host: str | None = None
    match role:
        case Role.JOURNALNODE:
            rpc = conf.get(journal.RPC)
            host = own_name(conf, rpc.port) or rpc.host
        case Role.DATANODE:
            host = conf.get(datanode.HOST_NAME) or socket.getfqdn()
        case _:
            address = conf.get(cluster.NAMENODE_RPC)
            host = None if address is None else address.host
    if host is None or is_address(host):
        raise ConfigurationError(
            f"{_KEYS.get(role, _NAMENODE)[0].name} has {HOST}, which stands for this daemon's "
            f"host, and that is {host}: use a host name in its address, as tickets are for names."
        )
    return host

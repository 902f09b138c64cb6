"""Checks of ``nnha doctor`` on this machine: configuration, names, fencing tools, key files."""

import asyncio
import os
import resource
import shlex
import shutil
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import assert_never

from fencing import model
from fencing.ssh_settings import SshSettings
from ha.cli.explain.configuration_problems import problems_of
from ha.cli.explain.doctor.ssh import ssh_finding
from ha.cluster.check_result import Finding, Severity, fail, ok, unknown, warn
from ha.conf.client_proxy import CLIENT_PROXY, USUAL_PROXY, without_client_proxy
from ha.conf.configuration import Configuration
from ha.conf.errors import ConfigurationError
from ha.conf.ignored import find_ignored
from ha.conf.keys import cluster as keys
from ha.conf.keys import journal as keys_journal
from ha.conf.keys.kerberos import WEB_PRINCIPAL
from ha.conf.keys.security import AUTHENTICATION, SECURITY_MODE, TLS_DIR, Mode
from ha.conf.topology import NameNodeAddress, namenodes, shared_edits
from ha.security.caller import Role
from ha.zkfc.settings.settings import fencing_plan

FEW_FILES = 4096
RESOLVE_SECONDS = 2.0


def check_configuration(configuration: Configuration) -> Iterator[Finding]:
    """Check that every key can be read, and that none looks misspelt."""
    problems = problems_of(configuration)
    for problem in problems:
        yield fail("configuration", problem, "nnha config validate")
    for warning in configuration.warnings:
        yield warn("configuration", warning, "correct the key, or delete it")
    if not problems and not configuration.warnings:
        yield ok("configuration", f"{len(configuration.settings)} settings can be used")


def check_ignored(configuration: Configuration) -> Iterator[Finding]:
    """Report the settings that have no effect in nnha, if there are any."""
    names = [one.name for one in find_ignored(configuration)]
    if names:
        found = f"{len(names)} known to Hadoop, not used by nnha: {', '.join(names)}"
        yield Finding("ignored settings", Severity.OK, found, "nnha config validate says why")


def check_clients(configuration: Configuration) -> Iterator[Finding]:
    """Warn if clients with these files would not find the active NameNode."""
    for name in without_client_proxy(configuration):
        found = f"{CLIENT_PROXY}.{name} is not set: Hadoop's clients do not find hdfs://{name}"
        yield warn("clients", found, f"set it to {USUAL_PROXY}")


def check_security(configuration: Configuration) -> Iterator[Finding]:
    """Report which callers daemons with these files trust."""
    yield from _certificates(configuration)
    yield from _tickets_on_pages(configuration)
    mode, secure = configuration.get(SECURITY_MODE), configuration.get(TLS_DIR) is not None
    found = f"{SECURITY_MODE.name}={mode}"
    match mode:
        case Mode.INSECURE:
            said = f"{found}: whoever reaches a port of a daemon is believed"
            yield warn("security", said, "let only trusted hosts reach these ports")
        case Mode.PERMISSIVE if secure:
            said = f"{found}: who proves nothing is let in and counted"
            yield warn("security", said, "once all daemons have certificates: strict")
        case Mode.PERMISSIVE:
            said = (
                f"{found}: who proves nothing is let in, and other machines can prove nothing yet"
            )
            yield warn("security", said, "let only trusted hosts reach these ports")
        case Mode.AUTO | Mode.STRICT if secure:
            yield ok("security", f"{found}: callers from other machines need a certificate")
        case Mode.AUTO | Mode.STRICT:
            yield ok("security", "daemons listen on loopback only, and the kernel tells who calls")


def _tickets_on_pages(configuration: Configuration) -> Iterator[Finding]:
    """Warn where RPC takes tickets, and pages, images and segments do not."""
    if configuration.get(AUTHENTICATION).lower() != "kerberos":
        return
    from ha.security.kerberos.settings import web_principal

    if web_principal(configuration, None) is None:
        said = f"{WEB_PRINCIPAL.name} is not set: pages, images and segments take no tickets"
        yield warn("tickets on pages", said, "set it to HTTP/_HOST@REALM: docs/kerberos.md#pages")


def _certificates(configuration: Configuration) -> Iterator[Finding]:
    """Report what is wrong with the certificates on this machine that this user can read."""
    base = configuration.get(TLS_DIR)
    if base is None:
        return
    # Loaded here: certificates take 13 MB, and most clusters have none.
    from ha.cli.certificate_report import problems_of as problems_of_certificates

    folders = [Path(base), *(Path(base) / role for role in Role)]
    seen = 0
    for folder in folders:
        if not os.access(folder / "key.pem", os.R_OK):
            continue
        seen += 1
        for problem in problems_of_certificates(folder):
            yield fail("certificate", f"{folder}: {problem}", f"nnha security check {folder}")
    if not seen:
        found = f"{base}: this user can read none of the certificates there"
        yield unknown("certificate", found, "ask as the daemons' user, or make one for role admin")


async def check_names(configuration: Configuration, nameservice: str) -> list[Finding]:
    """Check that every configured host name resolves here."""
    hosts = sorted(_hosts(configuration, nameservice))
    loop = asyncio.get_running_loop()

    async def resolve(host: str) -> str | None:
        try:
            async with asyncio.timeout(RESOLVE_SECONDS):
                await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except TimeoutError:
            return f"{host}: no answer in {RESOLVE_SECONDS:g} s"
        except OSError as error:
            return f"{host}: {error.strerror or error}"
        return None

    bad = [one for one in await asyncio.gather(*map(resolve, hosts)) if one is not None]
    if bad:
        return [fail("names", one, "add it to DNS or to /etc/hosts on all nodes") for one in bad]
    return [ok("names", f"{len(hosts)} of {len(hosts)} host names resolve here")]


def _hosts(configuration: Configuration, nameservice: str) -> set[str]:
    found: set[str] = set()
    for node in namenodes(configuration, nameservice):
        found |= {node.rpc.host, node.service.host, node.http.host}
    found |= {one.host for one in configuration.get(keys.ZOOKEEPER_QUORUM, nameservice=nameservice)}
    if configuration.get(keys_journal.SHARED_EDITS, nameservice=nameservice):
        found |= {one.host for one in shared_edits(configuration, nameservice).nodes}
    return found


def check_fencing(configuration: Configuration, nameservice: str) -> Iterator[Finding]:
    """Check that each NameNode can be fenced by a method that can run from here."""
    for node in namenodes(configuration, nameservice):
        check = f"fencing of {node.namenode}"
        try:
            plan = fencing_plan(configuration, nameservice, node.namenode)
        except ConfigurationError as error:
            yield fail(check, str(error), "nnha config validate")
            continue
        if not plan.methods:
            yield fail(check, "no method", "set dfs.ha.fencing.methods")
            continue
        yield from (method_finding(check, method, node, plan.ssh) for method in plan.methods)
        if not plan.methods[-1].proves_gone and isinstance(plan.methods[-1], model.ShellMethod):
            yield fail(
                check,
                f"{plan.methods[-1]} reports success and does nothing",
                "use journal-epoch instead, which does the same and says so, or a method that "
                "kills",
            )
        elif not any(method.proves_gone for method in plan.methods):
            yield warn(
                check,
                "edits only: an active that cannot be reached may answer reads until its lease "
                "ends, and Hadoop's, which has none, until it learns of its successor",
                "put sshfence, kill or shell(...) before journal-epoch, if such reads matter",
            )


def method_finding(
    check: str, method: model.MethodSpec, node: NameNodeAddress, settings: SshSettings
) -> Finding:
    """Check whether one method can run from here."""
    match method:
        case model.ShellMethod(command=command):
            return _shell(check, command, str(method))
        case model.SshMethod():
            return ssh_finding(check, method, node, settings)
        case model.KillMethod():
            return ok(check, "kill: works where that NameNode runs beside the ZKFC")
        case model.JournalEpochMethod():
            return ok(check, "journal-epoch: the journal refuses the old writer")
    assert_never(method)


def _shell(check: str, command: str, said: str) -> Finding:
    try:
        words = shlex.split(command)
    except ValueError as error:
        return fail(check, f"{said}: {error}", "correct the quotes")
    if words and "=" not in words[0] and "$" not in words[0] and shutil.which(words[0]) is None:
        return warn(
            check,
            f"{said}: there is no executable {words[0]} on this machine",
            "it must be there on every NameNode host: nnha fence test there",
        )
    return ok(check, f"{said}: its program is here")


def check_credentials(configuration: Configuration, nameservice: str) -> Iterator[Finding]:
    """Check that only its owner can read the file behind ha.zookeeper.auth."""
    value = configuration.get(keys.ZOOKEEPER_AUTH, nameservice=nameservice)
    if not value:
        return
    if not value.startswith("@"):
        yield warn(
            "credentials",
            "the secret of ha.zookeeper.auth is in the configuration file itself",
            "put it into a separate file and set the key to @/path/of/file",
        )
        return
    path = Path(value[1:])
    try:
        mode = path.stat().st_mode
    except OSError as error:
        yield fail("credentials", f"{path}: {error.strerror}", "correct ha.zookeeper.auth")
        return
    if mode & (stat.S_IRGRP | stat.S_IROTH):
        yield warn("credentials", f"others may read {path}", f"chmod 600 {path}")
    else:
        yield ok("credentials", f"{path} can be read by its owner only")


def check_machine() -> Iterator[Finding]:
    """Check the limits of this machine that hurt a daemon."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < FEW_FILES:
        then = "LimitNOFILE=65536 in the daemons' units"
        yield warn("open files", f"this shell may open {soft:,}", then)
    else:
        yield ok("open files", f"this shell may open {soft:,}")
    try:
        load = os.getloadavg()[0]
    except OSError:
        yield unknown("load", "this system does not report it")
        return
    cores = os.cpu_count() or 1
    if load > 4 * cores:
        yield warn("load", f"{load:.1f} on {cores} cores", "health checks may time out")
    else:
        yield ok("load", f"{load:.1f} on {cores} cores")

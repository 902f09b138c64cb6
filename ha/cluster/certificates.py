"""Which certificates the daemons of a cluster have, and whom they trust, by their own word."""

import asyncio
from collections.abc import Iterator, Sequence

from ha.cluster.daemon_queries import load_journal_probe
from ha.cluster.query import Look, NoAnswer, fetch
from ha.conf.configuration import Configuration
from ha.conf.keys import cluster as keys
from ha.conf.keys import journal as keys_journal
from ha.conf.topology import HostPort, namenodes, nameservice_of, shared_edits
from ha.notices.codec import entries, entry
from ha.record import dataclass


@dataclass(frozen=True, slots=True)
class Held:
    """What one daemon says; without an answer only why there is none, in ``error``.

    ``trusts`` has the fingerprints of authorities, ``signed_by`` that of its certificate's.
    """

    daemon: str
    error: str = ""
    mode: str = ""
    name: str = ""
    not_after: str = ""
    ending: str = ""
    signed_by: str = ""
    trusts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Asked:
    daemon: str
    page: HostPort | None
    journal: tuple[HostPort, str, str] | None = None
    """Of a JournalNode, which reports its page itself: its address, journal and nameservice."""


async def held_by_all(
    configuration: Configuration, seconds: float, also: Sequence[HostPort] = ()
) -> tuple[Held, ...]:
    """Ask the NameNodes, ZKFCs and JournalNodes of all nameservices for their certificates.

    Raises ``ConfigurationError``.  DataNodes and checkpoint services stand in no configuration but
    their own: those whose pages are in ``also`` are asked.
    """
    look = Look(seconds)
    asked = [*_daemons(configuration), *(_Asked(f"page {page}", page) for page in also)]
    try:
        return tuple(await asyncio.gather(*(_ask_daemon(look, one) for one in asked)))
    finally:
        look.end()


def _daemons(configuration: Configuration) -> Iterator[_Asked]:
    journals: dict[HostPort, _Asked] = {}
    for nameservice in configuration.get(keys.NAMESERVICES) or (nameservice_of(configuration),):
        automatic = configuration.get(keys.AUTO_FAILOVER, nameservice=nameservice)
        for node in namenodes(configuration, nameservice):
            yield _Asked(f"namenode {node.namenode}", node.http)
            if automatic:
                yield _Asked(f"zkfc {node.namenode}", node.zkfc_http)
        if configuration.get(keys_journal.SHARED_EDITS, nameservice=nameservice):
            uri = shared_edits(configuration, nameservice)
            for at in uri.nodes:
                asked = _Asked(f"journalnode {at}", None, (at, uri.journal_id, nameservice))
                journals.setdefault(at, asked)
    yield from journals.values()


async def _ask_daemon(look: Look, asked: _Asked) -> Held:
    try:
        address = asked.page
        if address is None:
            address = await look.ask(_page_of_journalnode(look, asked))
        page = await look.ask(fetch(address))
    except NoAnswer as failure:
        return Held(asked.daemon, str(failure))
    found = page.get("security")
    if not isinstance(found, dict):
        return Held(asked.daemon, "it does not say: is it of an older version?")
    name = entry(str, found.get("certificate"))
    if name is None:
        mode = entry(str, found.get("mode")) or ""
        return Held(asked.daemon, "it has no certificate", mode=mode)
    known = entries(Held, found, ("mode", "not_after", "ending", "signed_by", "trusts"))
    known = {key: "" if value is None else value for key, value in known.items()}
    return Held(asked.daemon, name=name, **known)


async def _page_of_journalnode(look: Look, asked: _Asked) -> HostPort:
    assert asked.journal is not None
    node, journal_id, nameservice = asked.journal
    if (opened := load_journal_probe()) is None:
        raise ValueError("the journal package is not installed here")
    async with opened(
        node.host, node.port, journal_id=journal_id, nameservice_id=nameservice
    ) as probe:
        answer = await probe.status(timeout_seconds=look.longest())
    port = entry(int, answer.get("http_port"))
    if not port:
        raise ValueError("it does not say where its page is")
    return HostPort(node.host, port)

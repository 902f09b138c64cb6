"""Reads the pages of Hadoop's DataNodes after a takeover, until each has nothing left to delete.

See docs/reference/datanodes.md#drained-datanodes.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias
from urllib.parse import urlencode

import structlog

from ha.conf.topology import HostPort
from ha.daemon.http.http_get import http_get
from ha.security.caller import Role
from namenode_sim.datanode_protocol.errors import PageNotHad
from namenode_sim.datanodes import draining
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.draining import read
from namenode_sim.datanodes.model import DatanodeId

log = structlog.get_logger()

LOOK_SECONDS: Final = 1.0
PAGE_SECONDS: Final = 3.0
MAX_PAGE_BYTES: Final = 256 * 1024
"""A bean of a DataNode has 5 KB."""

ReadPage: TypeAlias = Callable[[DatanodeId, str], Awaitable[bytes]]
"""Reads what a DataNode's /jmx says of one bean; raises PageNotHad."""


async def read_page(of: DatanodeId, query: str) -> bytes:
    """Read it by HTTP, from the address that the DataNode has called from.

    Raises:
        PageNotHad: no answer in time, another one than 200, or a longer one than a page has.
    """
    if not of.info_port:
        raise PageNotHad("the DataNode has registered no port for HTTP")
    address, target = HostPort(of.ip, of.info_port), f"/jmx?{urlencode({'qry': query})}"
    url = f"http://{address}{target}"
    try:
        answer = await http_get(
            address,
            target,
            most_bytes=MAX_PAGE_BYTES,
            deadline_seconds=PAGE_SECONDS,
            role=Role.DATANODE,
        )
    except (OSError, ValueError) as failure:
        raise PageNotHad(f"{url}: {str(failure) or type(failure).__name__}") from failure
    if answer.status != 200:
        raise PageNotHad(f"{url}: it answered {answer.status} {answer.reason}")
    return answer.body


class DrainCheck:
    """Looks at the DataNodes of one NameNode."""

    def __init__(
        self,
        cluster: Cluster,
        rules: draining.DrainRules,
        clock: Callable[[], float],
        read_of: ReadPage = read_page,
    ) -> None:
        self._cluster = cluster
        self._rules = rules
        self._clock = clock
        self._read = read_of

    async def run(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Read all pages that are to be read now."""
        cluster, rules, now = self._cluster, self._rules, self._clock()
        for node in draining.silent_long_enough(cluster, rules, now):
            log.warning(
                "datanodes.drained_by_silence",
                datanode=node.id.uuid,
                address=node.id.transfer_address,
                quiet_seconds=round(now - node.drain.quiet_since),
                advice="its /jmx cannot be read: nothing proves that it has carried out the "
                "deletions of the former active",
            )
        await asyncio.gather(*(self._ask(one) for one in draining.questions(cluster, rules, now)))

    async def _ask(self, question: draining.Question) -> None:
        found = await self._answer(question)
        noted = draining.note(self._cluster, question, found, self._clock())
        _log(question, found, noted)
        if noted is draining.Noted.COMMANDS_DONE:
            await self._ask(
                draining.question_to(self._cluster, self._cluster.nodes[question.of.uuid])
            )

    async def _answer(self, question: draining.Question) -> draining.Found:
        try:
            page = await self._read(question.of, draining.query_of(question))
        except PageNotHad as failure:
            return draining.Unreadable(str(failure))
        return read(question.bean, page)


def _log(question: draining.Question, found: draining.Found, noted: draining.Noted) -> None:
    who = {"datanode": question.of.uuid, "address": question.of.transfer_address}
    if noted is draining.Noted.DRAINED:
        log.info("datanodes.drained", **who)
    elif noted is draining.Noted.UNREADABLE and isinstance(found, draining.Unreadable):
        log.warning("datanodes.page_unreadable", **who, why=found.why)

"""Asks a NameNode, ours or Hadoop's, for its role, its transactions and its journal."""

import asyncio
import dataclasses
import json
from collections.abc import Mapping
from functools import partial
from typing import Final

from ha.cluster import query
from ha.cluster.agreement import CLOCK_FIELD
from ha.cluster.daemon_fields import checkpoint_view
from ha.cluster.files_view import files_of_hadoop, files_view
from ha.cluster.view import HADOOP, NameNodeRow
from ha.conf.topology import HostPort, NameNodeAddress
from ha.notices.codec import entries, entry
from ha.service.client import ServiceClient
from ha.service.model import ServiceStatus

_INFO = "/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo"
_BLOCKS = "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystem"
_OFF = ("", "OFF")
_ENTRIES: Final = (
    "epoch", "last_txid", "journal", "activity", "progress", "read_lease_valid", "daemon",
    CLOCK_FIELD,
)  # fmt: skip


async def ask_namenode(look: query.Look, node: NameNodeAddress) -> NameNodeRow:
    """Ask a NameNode about itself: nnha's on its status page, Hadoop's in its JMX beans."""
    row = NameNodeRow(node.namenode, str(node.rpc))
    # The role comes over RPC, which a Java NameNode answers too; the numbers are on our own page.
    rpc, page = await asyncio.gather(
        look.ask(_service_status(look, node.service)),
        look.ask(query.fetch(node.http)),
        return_exceptions=True,
    )
    if isinstance(rpc, query.NoAnswer):
        return dataclasses.replace(row, error=str(rpc))
    if isinstance(rpc, BaseException):
        raise rpc
    row = dataclasses.replace(
        row,
        state=rpc.state.value,
        ready=rpc.ready_to_become_active,
        not_ready_reason=rpc.not_ready_reason or None,
    )
    if isinstance(page, query.NoAnswer) and query.HTTP_NOT_FOUND in str(page):
        return await _of_hadoop(look, node, row)
    if isinstance(page, query.NoAnswer):
        return dataclasses.replace(row, note=f"status page: {page}")
    if isinstance(page, BaseException):
        raise page
    return dataclasses.replace(
        row,
        software="nnha",
        files=files_view(page.get("files")),
        checkpoint=checkpoint_view(page),
        **entries(NameNodeRow, page, _ENTRIES),
    )


async def _service_status(look: query.Look, address: HostPort) -> ServiceStatus:
    return await look.connections.ask(
        address,
        partial(ServiceClient.connected, address, deadline_seconds=look.longest()),
        lambda client: client.status(deadline_seconds=look.longest()),
    )


async def _of_hadoop(look: query.Look, node: NameNodeAddress, row: NameNodeRow) -> NameNodeRow:
    """Read the transactions of Hadoop's NameNode from its bean: it has no status page of ours."""
    try:
        bean = _first_bean(await look.ask(query.fetch(node.http, _INFO)))
        blocks = _first_bean(await look.ask(query.fetch(node.http, _BLOCKS)))
    except query.NoAnswer as failure:
        return dataclasses.replace(row, note=f"neither /status nor /jmx: {failure}")
    version = entry(str, bean.get("SoftwareVersion")) or entry(str, bean.get("Version")) or ""
    safe_mode = entry(str, bean.get("Safemode")) or ""
    software = f"{HADOOP} {version.partition(',')[0]}".strip()
    note = software if safe_mode in _OFF else f"{software}, in safe mode"
    files = files_of_hadoop(blocks, None if safe_mode in _OFF else safe_mode)
    return dataclasses.replace(
        row, software=software, last_txid=_last_txid(bean), note=note, files=files
    )


def _first_bean(page: Mapping[str, object]) -> Mapping[str, object]:
    beans = page.get("beans")
    return beans[0] if isinstance(beans, list) and beans and isinstance(beans[0], dict) else {}


def _last_txid(bean: Mapping[str, object]) -> int | None:
    """Read the last txid from the bean's JournalTransactionInfo, which is JSON in a string."""
    try:
        told = json.loads(entry(str, bean.get("JournalTransactionInfo")) or "")
        return int(told["LastAppliedOrWrittenTxId"])
    except (ValueError, KeyError, TypeError):
        return None

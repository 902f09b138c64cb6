"""``/jmx``: what tools made for Hadoop's NameNode look for, under its names."""

import json
import time
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Final
from urllib.parse import parse_qs

from ha.daemon.http.pages import PageAnswer, json_answer
from ha.daemon.version import version
from journal.model import NamespaceInfo
from namenode_sim.datanode_protocol.keeper import Keeper
from namenode_sim.process.block_beans import block_beans
from namenode_sim.term.namenode import NameNode
from namenode_sim.term.role import Role

_PREFIX: Final = "Hadoop:service=NameNode,name="
Bean = dict[str, object]


class NameNodeBeans:
    """GET /jmx[?qry=pattern]; reads the running parts when asked."""

    def __init__(
        self,
        namenode: NameNode,
        info: NamespaceInfo,
        address: str,
        checkpointed: Callable[[], int],
        keeper: Keeper,
    ) -> None:
        """Take the client RPC's ``address``; ``checkpointed``: the newest image's last edit."""
        self._keeper = keeper
        self._namenode = namenode
        self._info = info
        self._address = address
        self._checkpointed = checkpointed
        self._started_millis = int(time.time() * 1000)
        self._changed_millis = 0
        namenode.listen_for_roles(self._role_changed)

    def page(self, query: str) -> PageAnswer:
        asked = parse_qs(query).get("qry", ["*:*"])[-1].replace("*:*", "*")
        rules, pending = self._keeper.rules, len(self._keeper.upkeep.redundancy.pending)
        found = block_beans(self._keeper.cluster, rules.liveness, pending, time.monotonic())
        more = {f"{_PREFIX}{name}": bean for name, bean in found.items()}
        beans = [bean | more.pop(str(bean["name"]), {}) for bean in self._beans()]
        beans += [{"name": name} | bean for name, bean in more.items()]
        beans = [bean for bean in beans if fnmatchcase(str(bean["name"]), asked)]
        return json_answer({"beans": beans})

    def _role_changed(self, role: Role) -> None:
        if role in (Role.ACTIVE, Role.STANDBY):
            self._changed_millis = int(time.time() * 1000)

    def _beans(self) -> tuple[Bean, ...]:
        namenode = self._namenode
        state = "active" if namenode.state.role is Role.ACTIVE else "standby"
        edit_log, checkpointed = namenode.edit_log, self._checkpointed()
        last = namenode.namespace.last_applied if edit_log is None else edit_log.last_txid
        lag = namenode.tailer.lag_seconds if state == "standby" else 0.0
        transactions = {
            "LastAppliedOrWrittenTxId": str(last),
            "MostRecentCheckpointTxId": str(checkpointed),
        }
        return (
            {
                "name": f"{_PREFIX}NameNodeStatus",
                "modelerType": "org.apache.hadoop.hdfs.server.namenode.NameNode",
                "SecurityEnabled": False,
                "NNRole": "NameNode",
                "HostAndPort": self._address,
                "LastHATransitionTime": self._changed_millis,
                "State": state,
            },
            {
                "name": f"{_PREFIX}FSNamesystem",
                "modelerType": "FSNamesystem",
                "tag.Context": "dfs",
                "tag.HAState": state,
                "LastWrittenTransactionId": last,
                "TransactionsSinceLastCheckpoint": last - checkpointed,
                "MillisSinceLastLoadedEdits": 0 if lag is None else int(lag * 1000),
            },
            {
                "name": f"{_PREFIX}NameNodeInfo",
                "modelerType": "org.apache.hadoop.hdfs.server.namenode.FSNamesystem",
                "ClusterId": self._info.cluster_id,
                "BlockPoolId": self._info.block_pool_id,
                "SoftwareVersion": f"nnha {version()}",
                "Safemode": self._keeper.safe_mode.tip(),
                "NNStartedTimeInMillis": self._started_millis,
                "JournalTransactionInfo": json.dumps(transactions),
            },
        )

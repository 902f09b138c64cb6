"""The audit log of clients' calls, as Hadoop's FSNamesystem.audit: one line of each call."""

import json
import re
import stat
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import structlog
from google.protobuf.message import Message
from prometheus_client import Counter

from ha.conf.configuration import Configuration
from ha.conf.keys import security as keys
from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import ACCESS_CONTROL
from ha.rpc.protocol import Call, Ended, Method, RpcProtocol
from ha.security.audit import AuditFile
from ha.security.caller import Method as Proof
from namenode_sim.client_protocol.audit import WORDS, said_of
from namenode_sim.client_protocol.words.errors import FsError
from namenode_sim.client_protocol.words.paths import resolve
from namenode_sim.namespace.namespace import Namespace

log = structlog.get_logger()

LOST: Final = Counter(
    "nnha_client_audit_lines_lost", "Lines of calls that could not be written to nnha.audit.client"
)
_ESCAPE: Final = re.compile(r"\\\\|\\u[0-9a-f]{4}")
_PLAIN: Final = re.compile(r"[ !#-\[\]-~]*")


Watch = Callable[[RpcProtocol, str], RpcProtocol]
"""Of a protocol and a word for the transport: the protocol of whose calls lines are written."""


def unwatched(served: RpcProtocol, _proto: str) -> RpcProtocol:
    """Return a protocol as it is: no lines are written of its calls."""
    return served


def client_audit(conf: Configuration, namespace: Namespace) -> Watch:
    """Return the audit log as these files configure it; by default there is none, as in Hadoop."""
    if not (path := conf.get(keys.AUDIT_CLIENT)):
        return unwatched
    size = conf.get(keys.CALLER_CONTEXT_SIZE) if conf.get(keys.CALLER_CONTEXT) else 0
    left_out = frozenset(conf.get(keys.AUDIT_LEFT_OUT))
    return ClientAudit(namespace, AuditFile(Path(path), LOST).append, left_out, size).watched


class ClientAudit:
    """Writes lines of the calls of protocols that it watches."""

    def __init__(
        self,
        namespace: Namespace,
        write: Callable[[Sequence[str]], None],
        left_out: frozenset[str] = frozenset(),
        context_size: int = 128,
    ) -> None:
        """Write no lines of commands that are ``left_out``, and as much of caller contexts."""
        self._namespace, self._write = namespace, write
        self._left_out, self._context_size = left_out, context_size
        self._second, self._date = 0, ""

    def watched(self, served: RpcProtocol, proto: str = "rpc") -> RpcProtocol:
        """Return the same protocol, of whose calls lines are written."""
        found = served.methods
        known = {name: self._method(name, found[name], proto) for name in WORDS if name in found}
        return replace(served, methods={**found, **known})

    def _method(self, name: str, method: Method, proto: str) -> Method:
        def note(call: Call, request: Message, outcome: Message | Exception) -> None:
            is_refusal = getattr(outcome, "java_class", "") == ACCESS_CONTROL
            if isinstance(outcome, Exception) and not is_refusal:
                return
            try:
                self._write(
                    self._lines(name, call, request, None if is_refusal else outcome, proto)
                )
            except Exception:  # a call that was done is answered, whatever becomes of its line
                log.exception("audit.call_not_written", method=name, host=call.host)

        async def handle(call: Call, request: Message) -> Message:
            try:
                answer = await method.handle(call, request)
            except (FsError, RemoteFault) as refusal:
                note(call, request, refusal)
                raise
            note(call, request, answer)
            return answer

        def begin(call: Call, request: Message, ended: Ended) -> bool:
            def heard(outcome: Message | Exception) -> None:
                note(call, request, outcome)
                ended(outcome)

            return method.begin is not None and method.begin(call, request, heard)

        return replace(method, handle=handle, begin=begin, look=None)

    def _lines(
        self, name: str, call: Call, request: Message, answer: object, proto: str
    ) -> list[str]:
        now, said = time.time(), call.context[: self._context_size]
        context = f"\tcallerContext={_escape(said)}" if said else ""
        if int(now) != self._second:
            self._second = int(now)
            self._date = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now))
        return [
            f"{self._date},{int(now * 1000) % 1000:03d} INFO FSNamesystem.audit: "
            f"allowed={'true' if one.allowed else 'false'}\tugi={_ugi(call)}\tip=/{call.host}"
            f"\tcmd={one.cmd}\tsrc={_escape(one.src)}\tdst={_escape(one.dst)}"
            f"\tperm={self._perm(one.perm_of)}\tproto={proto}{context}"
            for one in said_of(name, request, answer)
            if one.cmd not in self._left_out
        ]

    def _perm(self, path: str | None) -> str:
        try:
            node = None if path is None else resolve(self._namespace, path).last
        except FsError:
            node = None
        if node is None:
            return "null"
        return f"{_escape(node.user)}:{_escape(node.group)}:{stat.filemode(node.mode & 0o1777)[1:]}"


def _ugi(call: Call) -> str:
    """Name the caller; what Hadoop has no name for, as nothing proves it there, is SIMPLE."""
    proof = call.proof if call.proof in (Proof.KERBEROS, Proof.TOKEN) else Proof.SIMPLE
    if call.real_user in (None, "", call.user):
        return f"{_escape(call.user)} (auth:{proof.name})"
    return f"{_escape(call.user)} (auth:PROXY) via {_escape(call.real_user)} (auth:{proof.name})"


def _escape(text: str | None) -> str:
    """Escape as Java's escapeJava, so that no name begins a field or a line."""
    if text is None or _PLAIN.fullmatch(text):
        return "null" if text is None else text
    escaped = _ESCAPE.sub(lambda found: found[0][:2] + found[0][2:].upper(), json.dumps(text)[1:-1])
    return escaped.replace("\x7f", "\\u007F")

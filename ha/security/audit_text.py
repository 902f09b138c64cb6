"""One line of the audit log, as Hadoop writes it or as JSON.

Whatever a caller says is escaped in both, so that no name can begin a line or move a cursor.

Pure.
"""

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from ha.record import dataclass
from ha.security.caller import Caller, Role


class Outcome(StrEnum):
    """What became of what was asked."""

    GRANTED = "granted"
    """The caller may; it is begun now, and another line says how it ended."""
    REFUSED = "refused"
    DONE = "done"
    FAILED = "failed"
    """The caller had the right; the reason is why it is not done."""
    UNKNOWN = "unknown"
    """It was begun, and its end was not seen."""


_SHORT: Final = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
MAX_CHARACTERS: Final = 1000
"""Of one value; the rest is cut."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What was asked, by whom, and what became of it.

    ``proto`` is how it came (rpc, grpc, http, lane), ``target`` the daemon that was asked.
    ``alike`` counts refusals of the same kind that were not written since the last one.
    """

    outcome: Outcome
    caller: Caller
    proto: str
    face: str
    action: str
    target: str
    reason: str = ""
    context: str = ""
    alike: int = 0

    @property
    def allowed(self) -> bool:
        """Whether the caller had the right."""
        return self.outcome is not Outcome.REFUSED


def escape(text: str) -> str:
    """Return one line without control characters, whatever was in it."""
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(map(_escape_character, text))


def _cut_and_escape(text: str) -> str:
    return escape(text[:MAX_CHARACTERS])


def _escape_character(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if character.isprintable():
        return character
    code = ord(character)
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )


def hadoop_line(entry: Entry, stamp: str) -> str:
    """Format as FSNamesystem.audit does; ``stamp`` is like ``2026-11-22 11:03:07,211``."""
    caller = entry.caller
    user = caller.name or (f"uid {caller.uid}" if caller.uid is not None else "null")
    pairs = {
        "allowed": "true" if entry.allowed else "false",
        "ugi": caller.in_full if caller.principal else f"{user} (auth:{caller.method.name})",
        "ip": f"/{caller.host}",
        "cmd": entry.action,
        "src": entry.target,
        "dst": "null",
        "perm": "null",
        "proto": entry.proto,
    }
    pairs |= {"certificate": str(caller)} if caller.certified else {}
    pairs |= {"callerContext": entry.context} if entry.context else {}
    told = entry.outcome not in (Outcome.GRANTED, Outcome.REFUSED)  # Hadoop has these two
    pairs |= {"outcome": entry.outcome.value} if told else {}
    pairs |= {"reason": entry.reason} if entry.reason else {}
    pairs |= {"alike": str(entry.alike)} if entry.alike else {}
    shown = "\t".join(f"{name}={_cut_and_escape(value)}" for name, value in pairs.items())
    return f"{stamp} INFO FSNamesystem.audit: {shown}"


def fields(entry: Entry) -> Mapping[str, object]:
    """Return the fields of a JSON line."""
    caller = entry.caller
    certified = {"certificate": str(caller)} if caller.certified else {}
    certified |= {"ugi": _cut_and_escape(caller.in_full)} if caller.principal else {}
    return {
        "allowed": entry.allowed,
        "outcome": entry.outcome.value,
        "user": _cut_and_escape(caller.name) or None,
        "uid": caller.uid,
        "method": caller.method.value,
        "roles": [role.value for role in Role if role in caller.roles],
        "address": caller.address,
        "proto": entry.proto,
        "face": _cut_and_escape(entry.face),
        "action": _cut_and_escape(entry.action),
        "target": entry.target,
        "reason": _cut_and_escape(entry.reason) or None,
        "context": _cut_and_escape(entry.context) or None,
        "alike": entry.alike,
        **certified,
    }


def json_line(entry: Entry, stamp: str) -> str:
    """Return one object; ASCII alone, so that no reader's line ends elsewhere."""
    return json.dumps({"timestamp": stamp, "event": "audit", **fields(entry)})

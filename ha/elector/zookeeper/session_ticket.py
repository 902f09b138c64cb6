"""The id and password of a ZooKeeper session, with which a new process continues it.  Pure."""

import json

from ha.record import dataclass


@dataclass(frozen=True, slots=True)
class SessionTicket:
    """A secret: any process that has it can use the session, and so holds its lock."""

    session_id: int
    password: bytes

    def __repr__(self) -> str:
        """Return a text without the password, as tickets are logged."""
        return f"SessionTicket(session_id={self.session_id:#x})"


def encode_ticket(ticket: SessionTicket) -> bytes:
    """Encode a ticket, with its password, as JSON."""
    return json.dumps({"session": ticket.session_id, "password": ticket.password.hex()}).encode()


def decode_ticket(data: bytes) -> SessionTicket | None:
    """Decode a ticket; return None if the bytes are not one."""
    try:
        found = json.loads(data)
        number, password = int(found["session"]), bytes.fromhex(found["password"])
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
    return SessionTicket(number, password) if number else None

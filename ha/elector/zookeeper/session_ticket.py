"""The number and password of a ZooKeeper session, by which a new process takes it over.  Pure."""

import json

from ha.record import dataclass


@dataclass(frozen=True, slots=True)
class SessionTicket:
    """Its holder owns the session, its lock included; keep it as a secret."""

    session_id: int
    password: bytes

    def __repr__(self) -> str:
        """Return a text without the password: tickets come into logs."""
        return f"SessionTicket(session_id={self.session_id:#x})"


def encode_ticket(ticket: SessionTicket) -> bytes:
    """Encode it as JSON."""
    return json.dumps({"session": ticket.session_id, "password": ticket.password.hex()}).encode()


def decode_ticket(data: bytes) -> SessionTicket | None:
    """Return the ticket; None where these bytes are none."""
    try:
        found = json.loads(data)
        number, password = int(found["session"]), bytes.fromhex(found["password"])
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
    return SessionTicket(number, password) if number else None

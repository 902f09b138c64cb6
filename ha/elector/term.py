"""Encodes the term record, a znode next to the breadcrumb.

The breadcrumb names the NameNode that may be active.  The record adds whether it became active, and
whether its process has ended.  It holds the number of the transaction that wrote the breadcrumb, so
that it applies to that term alone.

Pure.
"""

import json

from ha.elector.model import Term
from ha.record import dataclass


@dataclass(frozen=True, slots=True)
class TermRecord:
    """The state of the breadcrumb's term, and a text that describes the ended process."""

    breadcrumb: int
    """The ZooKeeper transaction that wrote the breadcrumb (mzxid)."""
    term: Term
    told: str = ""


def encode_term(record: TermRecord) -> bytes:
    """Return the record as the content of its znode."""
    value = {"breadcrumb": record.breadcrumb, "term": record.term.value, "told": record.told}
    return json.dumps(value, sort_keys=True).encode()


def decode_term(breadcrumb: int, data: bytes | None) -> Term:
    """Return the term if the record is of the breadcrumb that this transaction wrote.

    Otherwise, and for malformed data, return UNKNOWN; then the successor waits for the read lease.
    """
    if data is None:
        return Term.UNKNOWN
    try:
        value = json.loads(data)
        term = Term(value["term"]) if value["breadcrumb"] == breadcrumb else Term.UNKNOWN
    except (ValueError, KeyError, TypeError, RecursionError):
        return Term.UNKNOWN
    return term if term in (Term.SETTLED, Term.ENDED) else Term.UNKNOWN

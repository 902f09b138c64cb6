"""What is recorded next to the breadcrumb: how far the term of its owner has come.

The breadcrumb says which NameNode may be active, not whether it ever was, nor whether its process
still runs.  The record adds both.  It is bound to one write of the breadcrumb by ZooKeeper's number
of that write, so that it never applies to an earlier or a later owner, nor to a later term of the
same one.

Pure.
"""

import json

from ha.elector.model import Term
from ha.record import dataclass


@dataclass(frozen=True, slots=True)
class TermRecord:
    """How far the breadcrumb's term has come, and a text for people: which process, when."""

    breadcrumb: int
    """The ZooKeeper transaction that wrote the breadcrumb (mzxid)."""
    term: Term
    told: str = ""


def encode_term(record: TermRecord) -> bytes:
    """Return the record's bytes in ZooKeeper."""
    value = {"breadcrumb": record.breadcrumb, "term": record.term.value, "told": record.told}
    return json.dumps(value, sort_keys=True).encode()


def term_of(breadcrumb: int, data: bytes | None) -> Term:
    """Return a record's term of the breadcrumb written by that transaction, else UNKNOWN.

    Malformed bytes are UNKNOWN, too: the successor then waits, which is always safe.
    """
    if data is None:
        return Term.UNKNOWN
    try:
        value = json.loads(data)
        term = Term(value["term"]) if value["breadcrumb"] == breadcrumb else Term.UNKNOWN
    except (ValueError, KeyError, TypeError, RecursionError):
        return Term.UNKNOWN
    return term if term in (Term.SETTLED, Term.ENDED) else Term.UNKNOWN

"""What is recorded beside the breadcrumb: how far the term of its owner has come.

The breadcrumb says who may be active, not whether he ever was, nor whether his process still runs.
The record adds both.  It is bound to one write of the breadcrumb by ZooKeeper's number of that
write, so that it never speaks of an earlier or a later owner, nor of a later term of the same one.
"""

import json
from dataclasses import dataclass

from ha.elector.model import Term


@dataclass(frozen=True, slots=True)
class TermRecord:
    """``told`` is for people: who, which process, when."""

    breadcrumb: int
    """The ZooKeeper transaction that wrote the breadcrumb (mzxid)."""
    term: Term
    told: str = ""


def encode_term(record: TermRecord) -> bytes:
    """The record as it lies in ZooKeeper."""
    value = {"breadcrumb": record.breadcrumb, "term": record.term.value, "told": record.told}
    return json.dumps(value, sort_keys=True).encode()


def term_of(breadcrumb: int, data: bytes | None) -> Term:
    """What a record says of the breadcrumb written by that transaction; UNKNOWN if of another's.

    Bytes that are no record say nothing: the successor then waits, which is always safe.
    """
    if data is None:
        return Term.UNKNOWN
    try:
        value = json.loads(data)
        term = Term(value["term"]) if value["breadcrumb"] == breadcrumb else Term.UNKNOWN
    except (ValueError, KeyError, TypeError, RecursionError):
        return Term.UNKNOWN
    return term if term in (Term.SETTLED, Term.ENDED) else Term.UNKNOWN

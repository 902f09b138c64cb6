"""Hypothesis strategies that make any op, from the types of its fields."""

from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from namenode_sim.edits import ops

BYTE = st.integers(-128, 127)
SHORT = st.integers(-(2**15), 2**15 - 1)
BITS_16 = st.integers(0, 2**16 - 1)
INT = st.integers(-(2**31), 2**31 - 1)
LONG = st.integers(-(2**63), 2**63 - 1)

BY_NAME = {
    "replication": SHORT,
    "default_replication": SHORT,
    "mode": BITS_16,
    "permission": st.integers(0, 7),
    "storage_policy_id": BYTE,
    "ec_policy_id": BYTE,
    "policy_id": BYTE,
    "call_id": INT,
    "sequence_number": INT,
    "master_key_id": INT,
    "key_id": INT,
    "data_units": INT,
    "parity_units": INT,
    "cell_size": INT,
    "client_id": st.one_of(
        st.just(b""), st.binary(min_size=16, max_size=16), st.binary(max_size=40)
    ),
}
"""Integer and bytes fields that are narrower than their type says."""


def _of_type(hint: Any) -> st.SearchStrategy[Any]:  # noqa: ANN401 - any annotation
    if hint is int:
        return LONG
    if hint is str:
        return st.text(max_size=12)
    if hint is bool:
        return st.booleans()
    if hint is bytes:
        return st.binary(max_size=20)
    if hint is NoneType:
        return st.none()
    if isinstance(hint, UnionType):
        return st.one_of([_of_type(part) for part in get_args(hint)])
    if get_origin(hint) is tuple:
        parts = get_args(hint)
        if parts[-1] is Ellipsis:
            return st.lists(_of_type(parts[0]), max_size=4).map(tuple)
        return st.tuples(*map(_of_type, parts))
    if hasattr(hint, "__members__"):
        return st.sampled_from(hint)
    return instances(hint)


def instances(cls: type) -> st.SearchStrategy[Any]:
    hints = get_type_hints(cls)
    chosen = {}
    for field in fields(cls):
        hint = hints[field.name]
        strategy = _of_type(hint)
        if field.name in BY_NAME and hint in (int, bytes, int | None):
            strategy = BY_NAME[field.name]
            if hint == int | None:
                strategy = st.none() | strategy
        chosen[field.name] = strategy
    return st.builds(cls, **chosen)


def any_op() -> st.SearchStrategy[ops.Op]:
    return st.sampled_from(ops.OP_CLASSES).flatmap(instances)

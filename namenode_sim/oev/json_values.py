"""Ops as JSON objects and back, from the types of their fields: nothing is left out.

Bytes are hexadecimal, constants go by their names, absent values are null.
"""

from collections.abc import Callable
from dataclasses import MISSING, fields
from enum import IntEnum
from types import NoneType, UnionType
from typing import Any, Final, get_args, get_origin, get_type_hints

from ha.record import dataclass
from namenode_sim.edits import ops
from namenode_sim.oev.names import NAME_OF, OP_OF


@dataclass(frozen=True, slots=True)
class _Form:
    """How values of one type look in JSON; ``read`` raises ValueError for what does not fit."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def _same(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    return value


def _plain(kind: type) -> _Form:
    def read(value: object) -> object:
        if type(value) is not kind:
            raise ValueError(f"{str(value)[:40]!r} stands where {kind.__name__} belongs")
        return value

    return _Form(_same, read)


def _bytes() -> _Form:
    def read(value: object) -> bytes:
        if not isinstance(value, str):
            raise ValueError(f"{str(value)[:40]!r} is no hexadecimal text")  # noqa: TRY004
        return bytes.fromhex(value)

    return _Form(bytes.hex, read)


def _constant(kind: type[IntEnum]) -> _Form:
    def read(value: object) -> IntEnum:
        if not isinstance(value, str) or value not in kind.__members__:
            raise ValueError(f"{str(value)[:40]!r} is no {kind.__name__}")
        return kind[value]

    return _Form(lambda value: value.name, read)


def _optional(form: _Form) -> _Form:
    return _Form(
        lambda value: None if value is None else form.write(value),
        lambda value: None if value is None else form.read(value),
    )


def _list(form: _Form) -> _Form:
    def read(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise ValueError(f"{str(value)[:40]!r} is no list")  # noqa: TRY004
        return tuple(form.read(item) for item in value)

    return _Form(lambda value: [form.write(item) for item in value], read)


def _pair(first: _Form, second: _Form) -> _Form:
    def read(value: object) -> tuple[Any, Any]:
        if not isinstance(value, list) or len(value) != 2:
            raise ValueError(f"{str(value)[:40]!r} is no pair")
        return first.read(value[0]), second.read(value[1])

    return _Form(lambda value: [first.write(value[0]), second.write(value[1])], read)


def _of_type(hint: Any) -> _Form:  # noqa: ANN401 - any annotation
    if hint in (int, str, bool):
        return _plain(hint)
    if hint is bytes:
        return _bytes()
    if isinstance(hint, UnionType):
        (kind,) = (part for part in get_args(hint) if part is not NoneType)
        return _optional(_of_type(kind))
    if get_origin(hint) is tuple:
        first, second = get_args(hint)
        if second is Ellipsis:
            return _list(_of_type(first))
        return _pair(_of_type(first), _of_type(second))
    if issubclass(hint, IntEnum):
        return _constant(hint)
    return _object(hint)


def _object(kind: type) -> _Form:
    hints = get_type_hints(kind)
    parts = [(field.name, _of_type(hints[field.name])) for field in fields(kind)]
    known = {name for name, _ in parts}
    needed = {field.name for field in fields(kind) if field.default is MISSING}

    def write(value: object) -> dict[str, Any]:
        return {name: form.write(getattr(value, name)) for name, form in parts}

    def read(value: object) -> object:
        if not isinstance(value, dict):
            raise ValueError(f"{str(value)[:40]!r} is no object")  # noqa: TRY004
        if not needed <= value.keys() <= known:
            odd = sorted(value.keys() - known) or sorted(needed - value.keys())
            state = "unknown" if value.keys() - known else "missing"
            raise ValueError(f"{kind.__name__}: the field {odd[0][:40]!r} is {state}")
        return kind(**{name: form.read(value[name]) for name, form in parts if name in value})

    return _Form(write, read)


_FORMS: Final = {kind: _object(kind) for kind in ops.OP_CLASSES}


def to_json(txid: int, op: ops.Op) -> dict[str, Any]:
    """Return one op as an object with ``txid``, ``op`` and its fields."""
    kind = type(op)
    return {"txid": txid, "op": NAME_OF[kind], **_FORMS[kind].write(op)}


def from_json(record: dict[str, Any]) -> tuple[int, ops.Op]:
    """Return the txid and the op of such an object.

    Raises:
        ValueError: if it is none.
    """
    rest = dict(record)
    txid, name = rest.pop("txid", None), rest.pop("op", None)
    if type(txid) is not int or txid < 0:
        raise ValueError(f"txid {str(txid)[:40]!r} is no transaction id")
    kind = OP_OF.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ValueError(f"op {str(name)[:60]!r} is unknown")
    op: ops.Op = _FORMS[kind].read(rest)
    return txid, op

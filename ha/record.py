"""Dataclasses that cost little where they are defined: a daemon defines hundreds at its start.

The standard library compiles five methods for each: 0.3 ms, in all a third of a daemon's start.
Here it finds the fields and makes the slots, and compiles a method when it is first called.
"""

from collections.abc import Callable
from dataclasses import dataclass as _dataclass
from dataclasses import field, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

if TYPE_CHECKING:
    from dataclasses import dataclass

__all__ = ["dataclass", "field", "record", "replace"]

T = TypeVar("T")

_OF_ALL = {"__repr__", "__eq__", "__hash__"}
"""Methods that are the same for frozen classes and others."""


def _late(cls: type, name: str, *, frozen: bool) -> None:
    """Give the class a method that puts the compiled one into its place when it is called."""

    def method(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - of any method
        body = {at.name: at for at in fields(cls)} | {
            "__annotations__": {at.name: at.type for at in fields(cls)},
            "__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": "A twin.",
            **{hook: value for hook, value in vars(cls).items() if hook == "__post_init__"},
        }  # fmt: skip
        twin: type = _dataclass(
            init=name == "__init__", repr=name == "__repr__", eq=name == "__eq__",
            unsafe_hash=name == "__hash__", slots=True, frozen=frozen and name not in _OF_ALL,
        )(type(cls.__name__, (), body))  # fmt: skip
        setattr(cls, name, vars(twin)[name])
        return getattr(cls, name)(*arguments, **named)

    setattr(cls, name, method)


def _make(
    cls: type[T], *, frozen: bool = False, eq: bool = True, unsafe_hash: bool = False, **how: bool
) -> type[T]:
    # Without a docstring the standard library would write the signature, which takes a while.
    cls.__doc__ = cls.__doc__ or cls.__name__
    made = _dataclass(init=False, repr=False, eq=False, **how)(cls)
    own = {name for name, value in vars(made).items() if value is not None}
    names = {"__init__", "__repr__"} | ({"__eq__"} if eq else set())
    if frozen:
        names |= {"__setattr__", "__delattr__", "__getstate__", "__setstate__"}
    if unsafe_hash or (eq and frozen):
        names.add("__hash__")
    elif eq and "__hash__" not in own:
        made.__hash__ = None  # type: ignore[assignment]
    for name in names - own:
        _late(made, name, frozen=frozen)
    return made


if not TYPE_CHECKING:

    def dataclass(**options: bool) -> Callable[[type[T]], type[T]]:
        """Make a class as the standard library does, but its methods at their first calls."""
        return partial(_make, **options)


@dataclass_transform(frozen_default=True)
def record(cls: type[T]) -> type[T]:
    """Make a slotted class with equality and a hash, of which each call or commit makes several.

    mypy refuses to assign its fields.  A really frozen dataclass sets each field through
    ``object.__setattr__``: measured 0.6 µs for one of five fields against 0.2 µs, and several times
    that where the caches are cold.  Where few are made, ``dataclass(frozen=True, slots=True)``
    is the rule.
    """
    return _make(cls, slots=True, unsafe_hash=True)

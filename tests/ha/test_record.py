"""Our dataclasses behave as the standard library's; only their methods are made later.

Each class is defined twice, by ours and by the standard library, and both are treated alike.
"""

import copy
import dataclasses
import pickle
import sys
from collections.abc import Callable
from functools import partial
from operator import eq
from typing import Any, Final, Generic, TypeVar, cast

import pytest

from ha import record

T = TypeVar("T")

Outcome = tuple[str, object]


def _by(make: Callable[..., Any], options: dict[str, bool]) -> Callable[[type[Any]], type[Any]]:
    def decorate(kind: type[Any]) -> type[Any]:
        kind.__qualname__ = kind.__name__  # where pickle looks for it
        return cast("type[Any]", make(slots=True, **options)(kind))

    return decorate


def _defined(dataclass: Callable[[type[Any]], type[Any]]) -> dict[str, type[Any]]:
    """Define one class of each kind, with fields of each kind."""

    @dataclass
    class Plain:
        first: int
        second: str = "b"

    @dataclass
    class Nothing:
        pass

    @dataclass
    class One:
        """A class with a docstring."""

        only: object

    @dataclass
    class Made:
        first: int
        held: list[int] = record.field(default_factory=list)
        hidden: int = record.field(default=7, repr=False, compare=False)
        named: int = record.field(default=1, kw_only=True)

    @dataclass
    class Inner:
        given: int
        counted: int = record.field(init=False, default=3)
        made: list[int] = record.field(init=False, default_factory=list)
        late: int = record.field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "late", self.given * 2)

    @dataclass
    class Checked:
        value: int

        def __post_init__(self) -> None:
            if self.value < 0:
                raise ValueError("it must not be negative")

    @dataclass
    class Own:
        secret: str
        open: int = 1

        def __repr__(self) -> str:
            return "Own(...)"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, type(self)) and other.open == self.open

    @dataclass
    class Alone(Generic[T]):
        value: T

    return {name: kind for name, kind in locals().items() if isinstance(kind, type)}


NAN: Final = float("nan")
CALLS: Final[dict[str, list[tuple[tuple[object, ...], dict[str, object]]]]] = {
    "Plain": [
        ((1,), {}), ((1, "b"), {}), ((2,), {"second": "c"}), ((), {}), ((1, 2, 3), {}),
        ((), {"first": 1}), ((1,), {"third": 3}), ((1,), {"first": 2}),
    ],
    "Nothing": [((), {}), ((), {}), ((1,), {})],
    "One": [((NAN,), {}), ((NAN,), {}), (([],), {}), (((1, 2),), {}), ((), {})],
    "Made": [
        ((1,), {}), ((1, [2]), {"named": 4}), ((1, [2], 8), {}), ((1, [2], 8, 4), {}),
        ((), {"first": 1, "held": [], "hidden": 2}),
    ],
    "Inner": [((1,), {}), ((2,), {}), ((1, 2), {}), ((), {"given": 1})],
    "Checked": [((1,), {}), ((-1,), {}), ((), {}), ((), {"value": -1})],
    "Own": [(("a",), {}), (("b",), {}), (("a", 2), {}), ((), {"secret": "a"})],
    "Alone": [((1,), {}), (("x",), {}), ((), {"value": 1})],
}  # fmt: skip
OPTIONS: Final[list[dict[str, bool]]] = [
    {},
    {"eq": False},
    {"frozen": True},
    {"frozen": True, "eq": False},
    {"frozen": True, "kw_only": True},
    {"unsafe_hash": True},
]
DEEDS: Final[dict[str, Callable[[Any], object]]] = {
    "repr": repr,
    "hash": lambda one: hash(one) == hash(copy.copy(one)),
    "fields": lambda one: [(at.name, at.kw_only) for at in dataclasses.fields(one)],
    "patterns": lambda one: type(one).__match_args__,
    "dict": lambda one: dataclasses.asdict(one),
    "same": lambda one: dataclasses.replace(one) == one,
    "other": lambda one: repr(dataclasses.replace(one, **{type(one).__match_args__[0]: 5})),
    "unknown": lambda one: dataclasses.replace(one, unknown=1),
    "shallow": lambda one: repr(copy.copy(one)),
    "deep": lambda one: repr(copy.deepcopy(one)),
    "pickle": lambda one: repr(pickle.loads(pickle.dumps(one))),
    "assign": lambda one: setattr(one, next(iter(type(one).__slots__)), 9),
    "doc": lambda one: type(one).__doc__ == "A class with a docstring.",
    "delete": lambda one: delattr(one, next(iter(type(one).__slots__))),
}


def _outcome(deed: Callable[[], object]) -> Outcome:
    try:
        done = deed()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is to be the same
        return type(error).__name__, str(error)
    return "", done


def _outcomes(kind: type[Any], monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Do all to a class that can be done, and return what came of each."""
    monkeypatch.setattr(sys.modules[__name__], kind.__name__, kind, raising=False)
    seen: list[object] = []
    made: list[Any] = []
    for given, named in CALLS[kind.__name__]:
        new: Callable[..., Any] = kind
        error, one = _outcome(partial(new, *given, **named))
        seen.append((error, one) if error else None)
        made += [] if error else [one]
    seen += [_outcome(partial(eq, one, other)) for one in made for other in [*made, object()]]
    for name, deed in DEEDS.items():
        seen += [(name, _outcome(partial(deed, one))) for one in made]
    return seen


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: " ".join(options) or "plain")
@pytest.mark.parametrize("name", CALLS)
def test_a_class_does_what_the_standard_librarys_does(
    name: str, options: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compare what comes of each call, by whichever way a method is first called."""
    both = [
        _defined(_by(make, options))[name] for make in (dataclasses.dataclass, record.dataclass)
    ]
    theirs, ours = (_outcomes(kind, monkeypatch) for kind in both)
    assert ours == theirs


def test_a_class_that_holds_itself_is_shown() -> None:
    @record.dataclass(slots=True)
    class Link:
        after: object = None

    link = Link()
    link.after = link
    assert repr(link).endswith("Link(after=...)")


def test_no_method_is_compiled_before_it_is_called() -> None:
    """Count what the interpreter compiles: that is what a start pays for each class."""
    compiled = []
    watching = True

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if watching and event == "compile" and arguments[1] in (None, "<string>"):
            compiled.append(arguments[0])

    sys.addaudithook(watch)
    try:

        @record.dataclass(frozen=True, slots=True)
        class Point:
            x: int
            y: int = 0

        assert compiled == []
        assert Point(1) != Point(2)
        assert Point(1) == Point(1)
        assert len(compiled) == 4  # of two methods; a frozen class's __init__ brings two along
    finally:
        watching = False

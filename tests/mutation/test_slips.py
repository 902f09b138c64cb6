"""Each kind of slip is made, and takes the place of the product's code in one process alone."""

import ast
import asyncio
from collections.abc import Callable

import pytest

from tests import ROOT
from tests.mutation import toy
from tests.mutation.core import NO_WORLDS
from tests.mutation.cores import CORES, below
from tests.mutation.explained import explained
from tests.mutation.judging import forked
from tests.mutation.reach import Reached, blocks_of, lines_of, probe
from tests.mutation.slips import Slip, code_of, live, module_of, plant, slips_in, slips_of
from tests.mutation.unreached import name_of, unreached

TOY = "tests/mutation/toy.py"
SECONDS = 30.0

KINDS = {
    "a condition is forced": ("if a(): b()", {"a() -> True", "a() -> False"}),
    "a boundary": ("return a < 3", {"a < 3 -> a <= 3", "3 -> 4", "3 -> 2"}),
    "a comparison is turned": ("return a is None", {"a is None -> a is not None"}),
    "and, or": ("return a and b", {"a and b -> a or b", "a and b -> b", "a and b -> a"}),
    "a not is left out": ("return not a", {"not a -> a"}),
    "a term is left out": ("return a + b", {"a + b -> a"}),
    "min, max": ("return min(a, b)", {
        "min(a, b) -> max(a, b)", "min(a, b) -> b", "min(a, b) -> a"}),
    "a field is not replaced": ("return replace(a, b=c)", {"replace(a, b=c) -> replace(a)"}),
    "an action is left out, or comes later": ("return Step(a, (b(), c()))", {
        "(b(), c()) -> (c(),)", "(b(), c()) -> (b(),)", "(b(), c()) -> (c(), b())"}),
    "a sign": ("return a - 1", {"a - 1 -> a", "a - 1 -> a + 1", "1 -> 0", "1 -> 2"}),
    "a call is left out": ("a(b)", {"a(b) -> pass"}),
    "a change is left out": ("a = replace(a)", {"a = replace(a) -> pass"}),
    "a case is narrower": ("match a:\n  case 1 | 2: b()\n  case _: c()", {
        "1 | 2 -> 2", "1 | 2 -> 1", "case 1 | 2: ... -> nothing"}),
    "an ensure's condition": ("ensure(a or b, f'{a}')", {
        "a or b -> True", "a or b -> a and b", "a or b -> a", "a or b -> b",
        "ensure(a or b, f'{a}') -> pass"}),
    "what is told is none": ("raise Error(f'{a + b}', c and d)", set()),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_of_slip_is_made(kind: str) -> None:
    source, expected = KINDS[kind]
    body = source.replace("\n", "\n    ")
    made = slips_in("x.py", f"def f(a, b, c, d):\n    {body}\n")
    # Of the statements around it:
    calls = {"b() -> pass", "c() -> pass", "1 -> 2", "1 -> 0", "2 -> 3", "2 -> 1"}
    names = {f"{slip.before} -> {slip.after}" for slip in made}
    assert names - calls == expected - calls


CONFUSED = {
    "a parameter": ("def f(a: int, b: int, c: str): return g(a)", {"a -> b"}),
    "two arguments": ("def f(a: int, b: int): return g(a, b)", {
        "a -> b", "b -> a", "g(a, b) -> g(b, a)"}),
    "a field of the same class and type": (
        "def f(x): return x.promised if x.writer else x.first", {
            "x.promised -> x.writer", "x.writer -> x.promised",
            "x.writer -> True", "x.writer -> False"}),
    "an error": (
        "from a.errors import Fenced, OutOfSync\ndef f(x): raise Fenced(f'{x + 1}')", {
            "raise Fenced(f'{x + 1}') -> raise OutOfSync(f'{x + 1}')"}),
}  # fmt: skip


@pytest.mark.parametrize("kind", CONFUSED)
def test_one_thing_is_taken_for_another_of_its_kind(kind: str) -> None:
    source, expected = CONFUSED[kind]
    made = slips_in("x.py", source)
    assert {f"{slip.before} -> {slip.after}" for slip in made} == expected
    assert all(slip.confused is (slip.after not in {"True", "False"}) for slip in made)


OWED = {
    "a handler": ("try: a()\nexcept A: b()", {
        "b() -> pass", "except A: ... -> except Exception: ..."}),
    "an error is swallowed": ("try: a()\nexcept Exception: raise", {"raise -> pass"}),
    "what is always done": ("try: a()\nfinally: b()", {"b() -> pass"}),
    "a duty": ("a.close()", {"a.close() -> pass"}),
    "a narrow suppress": ("with suppress(A): a()", {"suppress(A) -> suppress(Exception)"}),
    "a guard after an await": ("await a()\nif b.gone: return 1", {
        "b.gone -> False", "b.gone -> True", "if b.gone: -> b.gone, read before the await"}),
    "a guard below a lock": ("async with a:\n  if b.gone: return 1", {
        "b.gone -> False", "b.gone -> True"}),
    "an assignment": ("c = await a()\nd = b.gone", {
        "d = b.gone -> b.gone, read before the await"}),
    "what the await gave": ("c = await a()\nd = c.gone", set()),
    "what does not change": ("c = await a()\nd = b.settings", set()),
    "one attribute of a statement": ("c = await a()\nreturn c + b.gone", {
        "return c + b.gone -> b.gone, read before the await"}),
}  # fmt: skip


@pytest.mark.parametrize("kind", OWED)
def test_what_is_owed_is_left_out_or_read_too_soon(kind: str) -> None:
    source, expected = OWED[kind]
    body = source.replace("\n", "\n    ")
    made = slips_in("x.py", f"async def f(a, b, c, d):\n    {body}\ndef g(x): x.gone = 1\n")
    assert {f"{slip.before} -> {slip.after}" for slip in made if slip.owed} == expected


def of_toy(text: str) -> Slip:
    (slip,) = [slip for slip in slips_of(TOY) if text in slip.name]
    return slip


PLANTED: dict[str, tuple[Callable[[], object], object]] = {
    "toy.full or word not in TABLE -> word not in TABLE": (
        lambda: toy.step(toy.Toy(3), "a"), (toy.Toy(4, "a"), ("told", "full"))),
    "self.count >= LIMIT -> self.count > LIMIT": (lambda: toy.Toy(3).full, False),
    "Dial.number.setter: self._number = number -> pass": (lambda: toy.dialled(5), 0),
    "return dial.number -> dial.number, read before the await": (
        lambda: asyncio.run(toy.turned(toy.Dial())), 0),
    "LIMIT: 3 -> 4": (lambda: toy.Toy(3).full, False),
    "TABLE: {'a': 1, 'b': 2} -> {'a': 1}": (
        lambda: toy.step(toy.Toy(), "b"), (toy.Toy(), ())),
    "replace(toy, count=count, last=word) -> replace(toy, count=count)": (
        lambda: toy.step(toy.Toy(), "a"), (toy.Toy(1), ("told",))),
}  # fmt: skip


@pytest.mark.parametrize("text", PLANTED)
def test_a_slip_takes_the_place_of_the_code_in_its_process_alone(text: str) -> None:
    call, expected = PLANTED[text]
    slip, before = of_toy(text), call()

    def planted() -> object:
        plant(slip)
        return call()

    (result,) = forked([planted], 1, SECONDS)
    assert result == expected
    assert call() == before != expected


def test_one_that_runs_for_ever_is_ended_and_one_that_fails_is_told() -> None:
    slip = of_toy("turns = turns - 1 -> pass")

    def spin() -> object:
        plant(slip)
        return toy.spin(2)

    works = [lambda: toy.spin(2), spin, lambda: 1 // 0]
    results = list(forked(works, 2, 1.0))
    assert results == [
        0,
        "not done in 1 s",
        "ZeroDivisionError: integer division or modulo by zero",
    ]


def test_the_blocks_that_run_are_told() -> None:
    def measured() -> object:
        reached = Reached()
        blocks = probe([TOY], reached)
        toy.step(toy.Toy(), "none")
        first = reached.taken()
        toy.step(toy.Toy(2), "a")
        return len(blocks), lines_of(first), lines_of(reached.taken()) - lines_of(first)

    (result,) = forked([measured], 1, SECONDS)
    lines = (ROOT / TOY).read_text(encoding="utf-8").splitlines()
    refused = 1 + lines.index("        return toy, ()")
    assert isinstance(result, tuple)
    blocks, first, then = result
    assert blocks > len(first)
    assert (TOY, refused) in first
    assert (TOY, refused) not in then


@pytest.mark.parametrize("core", CORES)
def test_the_slips_of_a_core_have_names_and_can_be_planted(core: str) -> None:
    for path in CORES[core].files:
        slips = slips_of(path)
        assert len({slip.name for slip in slips}) == len(slips)
        for slip in slips[:: max(1, len(slips) // 3)]:
            with slip.place.changed() as tree:
                if slip.block:
                    code_of(compile(module_text(tree), path, "exec"), slip.scope)
    assert all((ROOT / name).exists() for name in CORES[core].tests)


def module_text(tree: object) -> str:
    """Return the source, since a changed tree has no lines for what is new."""
    assert isinstance(tree, ast.Module)
    return ast.unparse(tree)


def test_the_list_of_unreached_branches_is_not_stale() -> None:
    paths = {path for core in CORES.values() for path in core.files}
    names = {name_of(block) for path in paths for block in blocks_of(path)}
    assert unreached().keys() <= names
    assert all(why.strip() for why in unreached().values())


def test_the_list_of_explained_slips_is_not_stale() -> None:
    paths = {name.partition("::")[0] for name in explained()}
    names = {slip.name for path in paths for slip in slips_of(path)}
    assert explained().keys() <= names
    assert all(why.strip() for why in explained().values())


def test_every_file_of_a_core_is_a_module_of_the_product() -> None:
    for core in CORES.values():
        for path in core.files:
            assert module_of(path).__file__ == str(ROOT / path)


def test_a_folder_is_judged_by_the_tests_that_mirror_it() -> None:
    rpc = below("ha/rpc")
    assert "ha/rpc/client.py" in rpc.files
    assert not [path for path in rpc.files if "_pb2" in path or "__init__" in path]
    assert rpc.tests == ("tests/ha/rpc",)
    lanes = below("journal/node/lanes")
    assert (rpc.worlds, lanes.worlds) == (NO_WORLDS, "journal")
    assert lanes.tests == ("tests/journal/node",)


def test_the_function_of_a_command_is_found() -> None:
    found = live(module_of("journal/node/process/command.py"), "journalnode")
    assert found.__qualname__ == "journalnode"

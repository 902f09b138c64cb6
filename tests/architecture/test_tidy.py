"""The rules of docs/STYLE.md that no linter checks."""

import ast
import io
import re
import subprocess
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests import PACKAGES, ROOT
from tests.needs import GIT

CHECKED = (*PACKAGES, "tests")
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
SHORT_DOCSTRING = 60
NEEDS_THE_LINE_ABOVE = re.compile(
    r"(It|Its|He|His|She|They|Their|The same|The other|The longer way|The way back|And|Or|Also)\b"
)
FILLERS = {"a", "an", "the", "of", "to", "in", "for", "it", "one", "all", "i", "are", "be", "s"}
RIDDLES = re.compile(
    r"\b(nobody|tells?|told|besides?|meanwhile|so (many|much|long))\b|(?<![,a-z] )\bwho(ever)?\b",
    re.IGNORECASE,
)
"""Words that the model codebases of this field hardly use in comments; docs/STYLE.md says why."""
PARTICIPLE = re.compile(
    r"_([a-z]*[^e]ed|agreed|begun|bound|broken|brought|built|caught|chosen|drawn|found|frozen|given"
    r"|gone|grown|heard|held|hidden|kept|known|laid|led|left|lost|made|meant|met|paid|said|seen|sent"
    r"|shown|spent|spoken|stood|taken|thrown|told|torn|won|worn|written)"
)
"""Private names of one word that do not say what the function does, as ``_opened`` or ``_told``."""
MAX_FOLDER_FILES = 22
BANNED_FILE_NAMES = {"utils.py", "util.py", "helpers.py", "common.py", "misc.py", "manager.py"}


def _tracked() -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode != 0:
        GIT.skip()
    return [ROOT / line for line in listing.stdout.splitlines() if (ROOT / line).is_file()]


def _sources() -> list[Path]:
    return [
        path
        for path in _tracked()
        if path.suffix == ".py"
        and path.relative_to(ROOT).parts[0] in CHECKED
        and not path.stem.endswith(("_pb2", "_pb2_grpc"))
    ]


@cache
def _statements(text: str) -> list[ast.AST]:
    """Return a module and the statements in it; ``ast.walk`` takes 10 s for the project."""
    nodes: list[ast.AST] = [ast.parse(text)]
    for node in nodes:  # it grows in here
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            nodes += getattr(node, part, ())
    return nodes


def findings(name: str, text: str) -> list[str]:
    found = []
    lines = text.count("\n")
    if lines > MAX_FILE_LINES:
        found.append(f"{name}: {lines} lines, at most {MAX_FILE_LINES}")
    if name.rsplit("/", 1)[-1] in BANNED_FILE_NAMES:
        found.append(f"{name}: a file is named after a noun of the domain")
    tree, *_ = nodes = _statements(text)
    assert isinstance(tree, ast.Module)
    if not ast.get_docstring(tree):
        found.append(f"{name}: no sentence at the top says what the module is")
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_FUNCTION_LINES:
                found.append(
                    f"{name}: {node.name} has {length} lines, at most {MAX_FUNCTION_LINES}"
                )
        if isinstance(node, ast.ClassDef) and _inherits_from_our_own(node):
            found.append(f"{name}: class {node.name} inherits; only errors and protocols may")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            odd = (*odd_docstring(node), *odd_name(name, node))
            found.extend(f"{name}: {node.name}: {why}" for why in odd)
        if isinstance(node, ast.ImportFrom) and _makes_costly_classes(name, node):
            found.append(f"{name}:{node.lineno}: dataclass is imported from ha.record")
    found.extend(f"{name}:{line}: the word {word!r}" for line, word in riddles(text))
    return found


def odd_name(
    file: str, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
) -> Iterator[str]:
    """Yield why the name of a private function of the product does not say what it does.

    A participle may name a predicate, and what is read as a property or stands after ``with``.
    """
    if isinstance(node, ast.ClassDef) or node.returns is None or file.startswith("tests/"):
        return
    marks = " ".join(ast.unparse(mark) for mark in node.decorator_list)
    read_well = "property" in marks or "contextmanager" in marks
    returns = ast.unparse(node.returns)
    if read_well or returns in {"None", "bool", "Never", "NoReturn"}:
        return
    if PARTICIPLE.fullmatch(node.name):
        yield "a function is named by a verb, or by the noun of what it returns"


def _makes_costly_classes(name: str, node: ast.ImportFrom) -> bool:
    """Return whether the product has the standard library compile five methods for each class."""
    if name.startswith("tests/") or name == "ha/record.py" or node.module != "dataclasses":
        return False
    return "dataclass" in {alias.name for alias in node.names}


def riddles(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and word for each word in docstrings and comments that makes riddles."""
    for node in _statements(text):
        match node:
            case ast.Expr(value=ast.Constant(value=str(said))):
                yield from ((node.lineno, one[0]) for one in RIDDLES.finditer(said))
            case _:
                pass
    if not any("#" in line and RIDDLES.search(line) for line in text.splitlines()):
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield from ((token.start[0], one[0]) for one in RIDDLES.finditer(token.string))


def crowded(names: Iterable[str]) -> list[str]:
    """Return the folders of the product, of all these files, that hold too many."""
    folders = Counter(name.rpartition("/")[0] for name in names if not name.startswith("tests/"))
    return [
        f"{folder}: {count} files, at most {MAX_FOLDER_FILES}"
        for folder, count in sorted(folders.items())
        if count > MAX_FOLDER_FILES
    ]


def odd_docstring(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Iterator[str]:
    """Yield why a docstring does not stand alone, or repeats the name; a test's may do so."""
    text = ast.get_docstring(node)
    if not text or node.name.startswith("test_"):
        return
    if len(text) < SHORT_DOCSTRING and NEEDS_THE_LINE_ABOVE.match(text):
        yield f"the docstring {text!r} needs the line above it"
    if _words(text) <= _words(node.name):
        yield f"the docstring {text!r} only repeats the name"


def _words(text: str) -> set[str]:
    """Words without their endings, so that "Sections" counts as "section"."""
    parted = re.sub(r"([a-z])([A-Z])", r"\1 \2", text).lower()
    found = set(re.findall("[a-z0-9]+", parted)) - FILLERS
    return {re.sub("(ing|ed|es|e|s)$", "", word) for word in found}


def _inherits_from_our_own(node: ast.ClassDef) -> bool:
    allowed = {
        "Protocol", "Exception", "StrEnum", "IntEnum", "Enum", "IntFlag", "NamedTuple", "TypedDict",
        "Generic", "Group", "ParamType", "RuleBasedStateMachine", "Command",
    }  # fmt: skip
    for base in node.bases:
        target = base.value if isinstance(base, ast.Subscript) else base
        name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
        if name in allowed or name.endswith(("Error", "Exception", "Servicer")):
            continue
        if name[:1].isupper() and _is_error_tree(node.name, name):
            continue
        if isinstance(target, ast.Attribute):
            continue  # a library's hook, such as asyncio.Protocol
        return True
    return False


def _is_error_tree(child: str, parent: str) -> bool:
    """Errors inherit from errors; their names end in what went wrong, not always in Error."""
    return (child, parent) in _error_tree()


@cache
def _error_tree() -> set[tuple[str, str]]:
    """Return every (class, base) pair that leads to Exception, across all our files."""
    bases: dict[str, set[str]] = {}
    for path in _sources():
        for node in _statements(path.read_text(encoding="utf-8")):
            if isinstance(node, ast.ClassDef):
                names = {b.id for b in node.bases if isinstance(b, ast.Name)}
                bases.setdefault(node.name, set()).update(names)
    roots = {"Exception", "RuntimeError", "ValueError", "OSError", "LookupError", "IntEnum"}
    while True:
        grown = roots | {name for name, parents in bases.items() if parents & roots}
        if grown == roots:
            return {(c, p) for c, parents in bases.items() for p in parents if p in roots}
        roots = grown


def test_every_source_file_is_tidy() -> None:
    found = [
        finding
        for path in _sources()
        for finding in findings(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


def test_no_folder_is_crowded() -> None:
    assert crowded(path.relative_to(ROOT).as_posix() for path in _sources()) == []


def test_a_crowded_folder_is_found() -> None:
    files = [f"ha/room/file_{number}.py" for number in range(MAX_FOLDER_FILES)]
    assert crowded(files) == []
    assert crowded([*files, "ha/room/one_more.py"]) == ["ha/room: 23 files, at most 22"]
    assert crowded([f"tests/{name}" for name in [*files, "ha/room/one_more.py"]]) == []


def test_nothing_names_a_place_outside_the_project() -> None:
    places = ("/" + "work/", "/" + "root/")
    for path in _tracked():
        if path.suffix in {".py", ".md", ".sh", ".toml", ".proto", ".txt", ".json", ""}:
            text = path.read_text(encoding="utf-8", errors="ignore")
            assert not any(place in text for place in places), (
                f"{path} names a place of one machine"
            )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x = 1\n", "no sentence"),
        ('"""Doc."""\n' + "x = 1\n" * 401, "lines, at most"),
        ('"""Doc."""\ndef long():\n' + "    x = 1\n" * 61, "long has 62 lines"),
        ('"""Doc."""\nclass A(B):\n    pass\n', "inherits"),
        ('"""Doc."""\ndef finish() -> None:\n    """Its end."""\n', "needs the line above"),
        ('"""Doc."""\ndef resume() -> None:\n    """The longer way back."""\n', "the line above"),
        ('"""Doc."""\nclass Reply:\n    """The same of a node."""\n', "needs the line above"),
        ('"""Doc."""\ndef close_files() -> None:\n    """Closes the files."""\n', "repeats"),
        ('"""Doc."""\nx = 1  # nobody knows\n', "the word 'nobody'"),
        ('"""A page tells it."""\n', "the word 'tells'"),
        ('"""Doc."""\ndef f() -> None:\n    """Who may call."""\n', "the word 'Who'"),
        ('"""Doc."""\n# Told meanwhile.\n', "the word 'meanwhile'"),
        ('"""Doc."""\ndef _opened() -> int:\n    return 1\n', "named by a verb"),
        ('"""Doc."""\nclass A:\n    async def _told(self) -> str: ...\n', "named by a verb"),
        (
            '"""Doc."""\nclass SegmentState:\n    """A segment\'s state."""\n',
            "only repeats the name",
        ),
    ],
)
def test_each_rule_catches_its_offender(text: str, complaint: str) -> None:
    assert any(complaint in finding for finding in findings("ha/thing.py", text))


@pytest.mark.parametrize(
    "text",
    [
        "def _open() -> int: ...",
        "def _deed() -> int: ...",
        "def _opened() -> bool: ...",
        "def _opened() -> None: ...",
        "@property\ndef _opened() -> int: ...",
        "@contextmanager\ndef _opened() -> Iterator[None]: ...",
    ],
)
def test_a_participle_may_name_what_is_no_riddle(text: str) -> None:
    assert findings("ha/thing.py", f'"""Doc."""\n{text}\n') == []


def test_the_name_rule_catches_a_drawer_for_everything() -> None:
    assert findings("ha/utils.py", '"""Doc."""\n') == [
        "ha/utils.py: a file is named after a noun of the domain"
    ]

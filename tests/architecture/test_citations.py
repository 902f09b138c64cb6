"""Every document that the code, the tests and the documents name is in the clone.

A citation is a path from the root and, where one rule of a page is meant, its anchor:
``docs/reference/journal-node.md#newepoch``.  The numbers of documents that no clone holds are gone,
and stay so.
"""

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests import PACKAGES
from tests.needs import GIT

ROOT: Final = Path(__file__).resolve().parents[2]
OURS: Final = (*PACKAGES, "tests", "docs")
WITH_COMMENTS: Final = frozenset({".py", ".proto", ".sh", ".toml", ".yaml", ".yml"})
ID_LISTS: Final = frozenset(
    {"docs/reference/acceptance.md", "docs/reference/invariants.md", "docs/zookeeper.md"}
)
"""Tables whose rows are numbered."""

LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
CODE: Final = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
"""In which brackets make no link."""
DOCUMENT: Final = re.compile(r"(?<![\w/.*-])((?:[\w.-]+/)*[\w-]+\.md)(?!\w)(#[\w-]*)?")
IN_CODE_FONT: Final = re.compile(r"`([^`\n]+)`")
PATH: Final = re.compile(rf"(?:{'|'.join(OURS)})/[\w./{{}},*-]+")

_OLD_PAGES: Final = (
    "qjm|hadoop-ha|hadoop-rpc|hadoop-formats|hadoop-baseline|spark-checkpoint|beside-hadoop"
    "|hot-path|operators|limits|style|house|security|deploy|blocks"
)
BANNED: Final[dict[str, re.Pattern[str]]] = {
    "a page and a number": re.compile(
        rf"(?<![\w./-])(?:{_OLD_PAGES})(?:\.md)?,? (?:section |scenario |Appendix )?"
        r"(?:\d|[A-F]\.?\d|[A-F]\)|[WXI]\d)"
    ),
    "a page without a number": re.compile(
        r"(?<![\w./-])(?:qjm|hadoop-ha|hadoop-formats|hadoop-baseline|spark-checkpoint)(?![\w./-])"
    ),
    "a number of the design": re.compile(
        r"\b[Dd]esign:? (?:[A-Z]\d|[A-Z]-[a-z]|section|notes?\b|qjm)"
    ),
    "the number of a weakness or a scenario": re.compile(r"(?<![\w/#.-])[WX]\d{1,2}\b"),
    "the number of an invariant": re.compile(r"(?<![\w/#.-])[IL]\d{1,2}\b"),
    "the number of a promise or a phase": re.compile(r"(?<![\w/#.-])[PD]\d\b"),
    "the number of a trap": re.compile(r"\b[Tt]raps? \d"),
    "the number of a row": re.compile(r"\b[Rr]ows? 8\.\d|§"),
}
SEED: Final = re.compile(r"\b[Ss]eeds? \d{3,}")
LINE_ENDS: Final = re.compile(r"\s*\n\s*(?:# |// )?")
"""In a remark, with what begins its next line."""


@cache
def tracked() -> tuple[str, ...]:
    """Return all files of the project, those that are not committed yet among them."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listing.returncode != 0:
        GIT.skip()
    return tuple(line for line in listing.stdout.splitlines() if (ROOT / line).is_file())


@cache
def anchors(name: str) -> frozenset[str]:
    """Return the anchors that GitHub gives the headings of one document."""
    found: dict[str, int] = {}
    slugs = set()
    fenced = False
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
        fenced ^= line.startswith("```")
        heading = re.match(r"#{1,6} +(.+)", line)
        if heading is None or fenced:
            continue
        slug = slug_of(heading[1])
        slugs.add(f"{slug}-{found[slug]}" if slug in found else slug)
        found[slug] = found.get(slug, 0) + 1
    return frozenset(slugs)


def slug_of(heading: str) -> str:
    """Return a heading as GitHub's anchor: no punctuation, blanks to hyphens, lower case."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip())
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def remarks(name: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield what people are to read in one file: a document whole, of a source its comments."""
    if name.endswith(".py"):
        flat = LINE_ENDS.sub(" ", text)
        # To parse all of the project takes 10 s; most files have nothing like a citation.
        if any(form.search(flat) for form in (DOCUMENT, SEED, *BANNED.values())):
            yield from _comments(text)
    elif name.endswith((".md", ".txt")):
        for paragraph in re.finditer(r"\S[\s\S]*?(?=\n\s*\n|\Z)", text):
            yield text.count("\n", 0, paragraph.start()) + 1, paragraph[0]
    else:
        for number, line in enumerate(text.splitlines(), start=1):
            comment = re.search(r"(?://|#)(.*)", line)
            if comment is not None:
                yield number, comment[1]


def _comments(text: str) -> Iterator[tuple[int, str]]:
    """Yield docstrings, also those of values, and runs of comment lines."""
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.lineno, node.value.value
    begun, run, last = 0, "", -1
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        if token.start[0] == last + 1:
            run += " " + token.string.lstrip("# ")
        else:
            if run:
                yield begun, run
            begun, run = token.start[0], token.string.lstrip("# ")
        last = token.start[0]
    if run:
        yield begun, run


def leads_nowhere(name: str, target: str, anchor: str) -> str | None:
    """Return why a citation in the file ``name`` fails, or None."""
    beside = (ROOT / name).parent / target
    places = [place.resolve() for place in (ROOT / target, beside) if place.exists()]
    if not places or ROOT not in (places[0], *places[0].parents):
        return f"there is no {target}"
    if anchor and anchor.lstrip("#") not in anchors(places[0].relative_to(ROOT).as_posix()):
        return f"{target} has no heading {anchor}"
    return None


def findings(name: str, text: str) -> list[str]:
    found = []
    for line, remark in remarks(name, text):
        flat = LINE_ENDS.sub(" ", remark)
        where = f"{name}:{line}: "
        for match in DOCUMENT.finditer(flat):
            if flat[max(0, match.start() - 3) : match.start()].endswith(("://", "](")):
                continue
            wrong = leads_nowhere(name, match[1], match[2] or "")
            found += [where + wrong] if wrong else []
        found += [where + f"{match[0]!r} is {what}" for what, match in _banned(name, flat)]
    if name.endswith(".md"):
        found += [f"{name}: {wrong}" for wrong in _of_document(name, text)]
    return found


def _banned(name: str, text: str) -> Iterator[tuple[str, re.Match[str]]]:
    for what, form in BANNED.items():
        numbered = name in ID_LISTS and what.startswith("the number")
        numbered |= name == "docs/reference/operations.md" and "promise" in what
        if not numbered:
            yield from ((what, match) for match in form.finditer(text))
    if not name.startswith("tests/") and not name.endswith(".md"):
        yield from (("a seed, which tells nobody the schedule", one) for one in SEED.finditer(text))


def _of_document(name: str, text: str) -> Iterator[str]:
    """Yield links between documents, and the paths of the project that stand in code font."""
    for match in LINK.finditer(CODE.sub("", text)):
        target, _, anchor = match[1].partition("#")
        if re.match(r"\w+:", target):
            continue
        own = target or Path(name).name
        if (ROOT / name).parent.joinpath(own).exists():
            if anchor and anchor not in anchors(
                (ROOT / name).parent.joinpath(own).resolve().relative_to(ROOT).as_posix()
            ):
                yield f"{own} has no heading #{anchor}"
        else:
            yield f"there is no {match[1]} beside it"
    for span in IN_CODE_FONT.finditer(text):
        for path in PATH.finditer(span[1]):
            if span[1][: path.start()].endswith(tuple("/.-_<>$~" + "abcdefghijklmnopqrstuvwxyz")):
                continue
            for one in _expanded(path[0].rstrip(".,/")):
                if not any(ROOT.glob(one)):
                    yield f"there is no {one}"


def _expanded(path: str) -> Iterator[str]:
    """Yield ``a/{b,c}.py`` as ``a/b.py`` and ``a/c.py``."""
    braces = re.search(r"\{([^{}]*)\}", path)
    if braces is None:
        yield path
        return
    for choice in braces[1].split(","):
        yield from _expanded(path[: braces.start()] + choice + path[braces.end() :])


def _checked(name: str) -> bool:
    path = Path(name)
    generated = path.stem.endswith(("_pb2", "_pb2_grpc"))
    scenario = path.suffix == ".txt" and path.parent.name == "scenarios"
    own = path != Path(__file__).relative_to(ROOT)
    return own and not generated and (path.suffix in {*WITH_COMMENTS, ".md"} or scenario)


def test_every_citation_leads_somewhere() -> None:
    found = [
        finding
        for name in tracked()
        if _checked(name)
        for finding in findings(name, (ROOT / name).read_text(encoding="utf-8"))
    ]
    assert not found, f"{len(found)}:\n" + "\n".join(found)


def test_every_violation_of_a_simulation_has_its_line_in_the_reference() -> None:
    tables = (ROOT / "docs/reference/invariants.md").read_text(encoding="utf-8").split("\n## ")
    known = {part.split("\n")[0]: set(re.findall(r"^\| (\w+) \|", part, re.M)) for part in tables}
    used: dict[str, set[str]] = {
        "Journal": set(), "Control plane": set(), "Blocks": set(), "Whole cluster": set(),
    }  # fmt: skip
    for name in tracked():
        if name.startswith("tests/simulation/") and name.endswith(".py"):
            package = {"failover": "Control plane", "blocks": "Blocks", "whole": "Whole cluster"}
            which = package.get(name.split("/")[2], "Journal")
            for node in ast.walk(ast.parse((ROOT / name).read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and re.fullmatch(r"[ILPW]\d+", str(node.value)):
                    used[which].add(str(node.value))
    for which, ids in used.items():
        assert ids, f"{which}: no violation found; have the simulations moved?"
        assert ids <= known[which], f"{which}: {sorted(ids - known[which])}"


@pytest.mark.parametrize(
    "remark",
    [
        "ordered, bounded (qjm 4.3)",
        "in its sockets (qjm 10.2, X20)",
        "made active again (hadoop-ha.md 4.5)",
        "a hand-over (hadoop-ha W14)",
        "the rules of qjm section 2",
        "reads end with the lease (operators.md C.0)",
        "as a time-out (operators D.1, traps 23 and 24)",
        "from PySpark's jars (design D7)",
        "from a peer (design D-d)",
        "measured (limits.md 6)",
        "as in the baseline (hadoop-baseline.md)",
        "kept for a while (W16)",
        "X20: the process stops",
        "may take (trap 9)",
        "never goes back (I7)",
        "has been ill for long (L4)",
        "the driver's part (P0)",
        "row 8.1 of the list",
        "See docs/reference/nothing.md.",
        "See docs/reference/election.md#no-such-rule.",
        "See ARCHITECTURE.md#no-such-heading.",
        "not wait for its lease (seed 103289)",
    ],
)
def test_an_offender_is_seen_in_a_docstring_in_a_comment_and_across_lines(remark: str) -> None:
    broken = remark.replace(" ", "\n", 1)
    assert findings("ha/thing.py", f'"""{remark}"""\n')
    assert findings("ha/thing.py", f'x = 1\n"""{broken}"""\n')
    assert findings("ha/thing.py", "# " + remark.replace(" ", "\n# ", 1) + "\n")
    assert findings("ha/thing.proto", f"// {remark}\n")


@pytest.mark.parametrize(
    "remark",
    [
        "See docs/reference/election.md#order-of-a-takeover.",
        "The picture is in ARCHITECTURE.md#processes; docs/STYLE.md has the rules.",
        "with hadoop-rpc to the port of nnha.journalnode.hadoop-rpc-address",
        "dfs.ha.tail-edits.qjm.rpc.max-txns, and x509",
        "its limits and its style are those of the operators",
    ],
)
def test_good_remarks_are_left_alone(remark: str) -> None:
    assert not findings("ha/thing.py", f'"""{remark}"""\n')


@pytest.mark.parametrize(
    "text",
    [
        "[it](nowhere.md)",
        "[it](reference/election.md#nothing)",
        "[it](#nothing)",
        "see `ha/zkfc/never_there.py`",
        "see `journal/{model,never_there}.py`",
        "see `tests/never_there*`",
        "as design D8 says",
    ],
)
def test_an_offender_in_a_document_is_seen(text: str) -> None:
    assert findings("docs/zkfc.md", f"# Title\n\n{text}\n") or findings("docs/fencing.md", text)


def test_good_links_and_paths_are_left_alone() -> None:
    text = (
        "[a](reference/election.md#znodes) [b](../ARCHITECTURE.md) [c](https://example.org/x.md#y)\n"
        "`journal/{model,errors}.py`, `tests/*`, `/tmp/ha/zkfc/x`, `docs/reference/`\n"
        "`RULE:[2:$1](nn)`\n```\nRULE:[1:$1](alice)\n```\n"
    )
    assert not findings("docs/fencing.md", text)


def test_headings_have_the_anchors_that_github_gives_them() -> None:
    assert slug_of("Where we differ") == "where-we-differ"
    assert slug_of("`sshfence`, and: ssh!") == "sshfence-and-ssh"
    assert slug_of("A [link](x.md) in it") == "a-link-in-it"
    assert "the-journals-rules-in-short" in anchors("ARCHITECTURE.md")


def test_a_seed_may_stand_in_a_test() -> None:
    assert not findings("tests/test_thing.py", '"""Found by seed 18045 of the soak."""\n')

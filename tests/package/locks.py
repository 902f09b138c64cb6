"""The locks of the extras: cut out of requirements.lock, never solved anew.

So a package, an image and the tests have the same files.  Which needs which is read from the
installed distributions of ``.venv``, which come from that lock.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Final

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests import ROOT

LOCK: Final = ROOT / "requirements.lock"
FOLDER: Final = ROOT / "deploy" / "locks"
EXTRAS: Final = {"base": "", "namenode": "namenode", "ssh": "ssh", "spark": "spark", "tls": "tls"}
"""Lock by name, and its extra; each has the base, too."""


def entries(lock: str) -> Mapping[str, str]:
    """Return by distribution its lines of a lock with hashes, for every Python that it names."""
    found = re.split(r"^(?=\S+==)", lock, flags=re.MULTILINE)
    lines: dict[str, str] = {}
    for one in found:
        if "==" in one:
            name = canonicalize_name(one.partition("==")[0])
            lines[name] = lines.get(name, "") + one
    return lines


def derived(extra: str) -> str:
    """Return the lock of the base with this extra (or none)."""
    known = entries(LOCK.read_text())
    wanted = _closure(_direct(extra))
    return "".join(known[name] for name in sorted(wanted))


def write_all() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, extra in EXTRAS.items():
        path_of(name).write_text(derived(extra))


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.lock"


def _direct(extra: str) -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    words = list(project["dependencies"])
    pending = [extra] if extra else []
    while pending:
        for word in project["optional-dependencies"][pending.pop()]:
            if word.startswith("nnha["):
                pending += Requirement(word).extras
            else:
                words.append(word)
    return [Requirement(word) for word in words]


def _closure(direct: Iterable[Requirement]) -> set[str]:
    wanted: set[str] = set()
    pending = [(one, extra) for one in direct for extra in (*one.extras, "")]
    seen: set[tuple[str, str]] = set()
    while pending:
        one, extra = pending.pop()
        name = canonicalize_name(one.name)
        if (name, extra) in seen or not _applies(one):
            continue
        seen.add((name, extra))
        wanted.add(name)
        for word in metadata.requires(name) or ():
            needed = Requirement(word)
            if needed.marker is None or needed.marker.evaluate(
                default_environment() | {"extra": extra}  # type: ignore[arg-type]
            ):
                needed.marker = None
                pending += [(needed, more) for more in (*needed.extras, "")]
    return wanted


def _applies(one: Requirement) -> bool:
    return one.marker is None or one.marker.evaluate()

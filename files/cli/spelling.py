"""Paths as people spell them: absolute, relative to /user/NAME, or with a scheme.  Pure."""

import re
from dataclasses import dataclass
from typing import Final

_URI: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*)(?=/|$)|(?=/))(.*)", re.DOTALL)


class BadPath(Exception):
    """A path that names nothing in this cluster; the text says why, and what to write instead."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """What was written: all but ``path`` says only how results are to be spelt.

    ``path`` is a pattern, absolute or relative to ``home``; ``prefix`` stood before it.
    """

    path: str
    home: str
    prefix: str = ""

    def absolute(self, path: str) -> str:
        """Return the path that this pattern, or one that it expands to, means.

        Raises:
            BadPath: it leads above the root.
        """
        parts: list[str] = []
        whole = path if path.startswith("/") or self.prefix else f"{self.home}/{path}"
        for part in whole.split("/"):
            if part == ".." and not parts:
                raise BadPath(f"{path!r} leads above the root. Write the path from / on.")
            if part == "..":
                parts.pop()
            elif part not in ("", "."):
                parts.append(part)
        return "/" + "/".join(parts)

    def shown(self, found: str) -> str:
        """Return a path that was found as it would be written in the manner of this one."""
        if self.prefix:
            return self.prefix + found
        if self.path.startswith("/"):
            return found
        home, parts = self.home[1:].split("/"), found[1:].split("/") if found != "/" else []
        same = 0
        while same < min(len(home), len(parts)) and home[same] == parts[same]:
            same += 1
        return "/".join([".."] * (len(home) - same) + parts[same:]) or "."


def spelt(text: str, user: str, nameservice: str) -> Spelling:
    """Return what a path on the command line means.

    Raises:
        BadPath: it is empty, or of another file system or nameservice than the one configured.
    """
    home = f"/user/{user}"
    if not text:
        raise BadPath("A path is empty. Write / for the root, or . for your home directory.")
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise BadPath("this name is not UTF-8, and names in HDFS are.")
    found = _URI.fullmatch(text)
    if found is None:
        return Spelling(text, home)
    scheme, authority, path = found.groups()
    if scheme.lower() != "hdfs":
        raise BadPath(
            f"this command knows hdfs: only, and not {scheme}:. Hadoop's own client reads "
            "other file systems: nnha dfs"
        )
    if authority and authority != nameservice:
        raise BadPath(
            f"the configuration is about the nameservice {nameservice}, and not about "
            f"{authority}. Leave hdfs://{authority} out, or name the other one's with -ns or "
            "--conf-dir."
        )
    return Spelling(path or "/", home, f"hdfs://{authority or ''}")


def child(parent: str, name: str) -> str:
    """Return the path of an entry of a directory, as written or absolute."""
    if parent == ".":
        return name
    return parent + name if parent.endswith("/") else f"{parent}/{name}"


def parent_of(path: str) -> str:
    """Return the directory of an absolute path; the root's is the root."""
    return path.rpartition("/")[0] or "/"


def name_of(path: str) -> str:
    """Return the last name of an absolute path; the root's is empty."""
    return path.rpartition("/")[2]

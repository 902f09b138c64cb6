"""Parses ``dfs.ha.fencing.methods`` by Hadoop's rules.

See docs/reference/fencing.md#fencing-methods-as-text.

Pure.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from fencing import model
from fencing.model import BadSpec

MAX_METHODS = 20
"""A limit, since each method may take its whole deadline while there is no active."""

_LINE = re.compile(r"([a-zA-Z0-9.$-]+)(?:\((.+)\))?")
_SSH_ARGUMENT = re.compile(r"([^:]+)?(?::([0-9]{1,5}))?")
_HIGHEST_PORT = 65535


def parse_methods(text: str) -> tuple[model.MethodSpec, ...]:
    """Parse the methods, one a line, in the order in which they are tried.

    A line is ``name`` or ``name(argument)``; blank lines are skipped, and a ``#`` starts a comment
    **even inside an argument**, as in Hadoop.  Raises ``BadSpec`` naming the line.
    """
    methods = [
        _method(number, line.split("#", 1)[0].strip(), line)
        for number, line in enumerate(text.split("\n"), start=1)
        if line.split("#", 1)[0].strip()
    ]
    if len(methods) > MAX_METHODS:
        raise BadSpec(f"{len(methods)} fencing methods are configured; at most {MAX_METHODS} are.")
    return tuple(methods)


def _method(number: int, content: str, line: str) -> model.MethodSpec:
    match = _LINE.fullmatch(content)
    if match is None:
        cut = (
            " (everything from # on is a comment, also inside the brackets)" if "#" in line else ""
        )
        raise BadSpec(
            f"Unable to parse line {number} of the fencing methods: {content!r}{cut}. "
            f"Write one method a line: {model.method_names(in_full=True)}."
        )
    name, argument = match[1], match[2]
    if name in _WITH_ARGUMENT:
        return _WITH_ARGUMENT[name](number, argument)
    if name not in _WITHOUT_ARGUMENT:
        raise BadSpec(
            f"Line {number} of the fencing methods names {name!r}, which nnha does not have: "
            f"use {model.method_names()}. (Java classes cannot be run here.)"
        )
    if argument is not None:
        raise BadSpec(
            f"Line {number} of the fencing methods gives {name} an argument; it takes none."
        )
    return _WITHOUT_ARGUMENT[name]()


def _shell(number: int, argument: str | None) -> model.ShellMethod:
    if argument is None or not argument.strip():
        raise BadSpec(
            f"No argument passed to 'shell' in line {number} of the fencing methods. "
            "Write shell(command)."
        )
    return model.ShellMethod(argument)


def _ssh(number: int, argument: str | None) -> model.SshMethod:
    match = _SSH_ARGUMENT.fullmatch(argument or "")
    port = int(match[2] or model.SSH_PORT) if match else 0
    if match is None or not 0 < port <= _HIGHEST_PORT:
        raise BadSpec(
            f"Unable to parse user and port {argument!r} in line {number} of the fencing methods. "
            "Write sshfence, sshfence(user), sshfence(:port) or sshfence(user:port)."
        )
    return model.SshMethod(match[1], port)


_WITH_ARGUMENT: Final[Mapping[str, Callable[[int, str | None], model.MethodSpec]]] = {
    "sshfence": _ssh,
    "shell": _shell,
}
_WITHOUT_ARGUMENT: Final[Mapping[str, Callable[[], model.MethodSpec]]] = {
    str(one()): one for one in (model.KillMethod, model.JournalEpochMethod)
}

"""Finding keys that are probably misspelt, or suffixed with a node that does not exist.  Pure."""

from collections.abc import Iterator, Mapping, Sequence

from ha.conf.errors import ConfigurationError
from ha.conf.keys.cluster import NAMENODES, NAMESERVICES
from ha.conf.keys.key import Scope
from ha.conf.keys.table import KEYS
from ha.conf.keys.unused import NOT_USED, reason_not_used
from ha.conf.reader import Setting

OURS = "nnha."
NEAR = 0.9
"""Similarity (difflib) from which a name is taken for a misspelling of another."""

_NAMES = sorted(KEYS.keys() | NOT_USED.keys())
_OUR_NAMES = [name for name in _NAMES if name.startswith(OURS)]
_NODES_OF = NAMENODES.name + "."

Nodes = Mapping[str, Sequence[str]]
"""The configured NameNode ids of each nameservice."""


def untrusted_znodes(settings: Mapping[str, Setting], nodes: Nodes) -> Iterator[str]:
    """Yield a warning for each key that resembles a known one or names a node that does not exist.

    Raises ``ConfigurationError`` for an unknown key of ours (``nnha.*``): no other program could
    mean anything by it.
    """
    unknown: list[str] = []
    for setting in settings.values():
        try:
            doubt = _doubt(setting, nodes)
        except ConfigurationError as error:
            unknown.append(str(error))
            continue
        if doubt is not None:
            yield f"{setting.origin}: {doubt}"
    if unknown:
        raise ConfigurationError("\n".join(unknown))


def _doubt(setting: Setting, nodes: Nodes) -> str | None:
    name = setting.name
    if name in KEYS or reason_not_used(name) or name.startswith(_NODES_OF):
        return None
    base, suffix = split_suffix(name, nodes)
    if base in NOT_USED:
        return None
    if base in KEYS:
        return _doubt_of_scope(base, suffix)
    stranger = _strange_suffix(name, nodes)
    if stranger is not None:
        return stranger
    if name.startswith(OURS):
        raise _unknown(setting, base)
    near = _nearest(base, _NAMES, NEAR)
    return near and f"{name} is not a known key. Did you mean {'.'.join((near, *suffix))}?"


def split_suffix(name: str, nodes: Nodes) -> tuple[str, tuple[str, ...]]:
    """Return a name without ``.<nameservice>`` or ``.<nameservice>.<namenode>``, and that."""
    for nameservice, namenodes in nodes.items():
        for suffix in (*((nameservice, node) for node in namenodes), (nameservice,)):
            ending = "." + ".".join(suffix)
            if name.endswith(ending):
                return name.removesuffix(ending), suffix
    return name, ()


def _doubt_of_scope(base: str, suffix: tuple[str, ...]) -> str | None:
    match KEYS[base].scope, len(suffix):
        case (Scope.NAMENODE, _) | (Scope.NAMESERVICE, 1):
            return None
        case (Scope.NAMESERVICE, _):
            return f"{base} is read per nameservice, not per NameNode: .{'.'.join(suffix)} is lost"
        case _:
            return f"{base} is read without a suffix: .{'.'.join(suffix)} makes it unread"


def _strange_suffix(name: str, nodes: Nodes) -> str | None:
    """Return a warning for a known per-node key whose suffix names no configured node."""
    if not nodes and not name.startswith(OURS):
        return None
    parts = name.split(".")
    for length in (1, 2):
        base, suffix = ".".join(parts[:-length]), parts[-length:]
        if base not in KEYS or KEYS[base].scope is Scope.GLOBAL:
            continue
        if not nodes:
            return f"{name} names a nameservice, but {NAMESERVICES.name} is not set"
        if suffix[0] not in nodes:
            known = ", ".join(nodes)
            return f"{name} names no nameservice that is configured (dfs.nameservices: {known})"
        known = ", ".join(nodes[suffix[0]])
        return (
            f"{name} names no NameNode that is configured ({NAMENODES.name}.{suffix[0]}: {known})"
        )
    return None


def _unknown(setting: Setting, base: str) -> ConfigurationError:
    near = _nearest(base, _OUR_NAMES, 0.6)
    advice = f"Did you mean {near}?" if near else f"Known are: {', '.join(_OUR_NAMES)}."
    return ConfigurationError(f"{setting.origin}: {setting.name} is not a key of nnha. {advice}")


def _nearest(name: str, known: Sequence[str], cutoff: float) -> str | None:
    import difflib  # 0.3 MB of a daemon's memory, for a key that is not known

    return next(iter(difflib.get_close_matches(name, known, cutoff=cutoff)), None)

"""Which settings are secrets, and how they and other texts are shown without them.  Pure."""

import re
from typing import Final

from ha.conf.keys.table import KEYS
from ha.conf.keys.unused import NOT_USED

HIDDEN: Final = "(hidden)"
_STARS: Final = "***"

_SECRET_NAME: Final = re.compile(
    r"password|passwd|secret|credential|[.-](auth|token|pass)$|account\.key|encryption\.key$",
    re.IGNORECASE,
)
"""As Hadoop's hadoop.security.sensitive-config-keys, and ha.zookeeper.auth."""
_SUFFIX_PARTS: Final = 2
"""``.<nameservice>`` or ``.<nameservice>.<namenode>``."""

_NAMED: Final = re.compile(
    r"""(?i)((?:pass(?:w(?:or)?d|phrase|code|key)|pass(?![a-z])|secret|token|credential|api[_-]?key)
        [\w.-]*)
        (["']?\s*[=:]\s*|\s+(?!-))
        (?:"[^"]*"|'[^']*'|[^\s;&|"',)}\]]|[,)}\]](?!\s|$))+""",
    re.VERBOSE,
)
"""``--password hunter2``, ``API_KEY='hunter 2'``, ``"secret": "hunter2"``; what ends a sentence or
closes a bracket is no part of it."""
_IN_ADDRESS: Final = re.compile(r"(\w+://[^\s:/@]*):[^\s@/]+@")
"""``https://user:hunter2@host``."""
_WITH_SCHEME: Final = re.compile(r"(?i)\b(digest|basic|ntlm|plain):([^\s:,;]+):([^\s,;:\"')]+)")
"""``digest:user:hunter2``, as in ha.zookeeper.auth."""


def is_secret(key: str) -> bool:
    """Return whether the value of a key, with or without a node's suffix, is a secret."""
    parts = key.split(".")
    bare = [".".join(parts[: len(parts) - cut]) for cut in range(_SUFFIX_PARTS + 1)]
    known = next((name for name in bare if name in KEYS or name in NOT_USED), None)
    return any(_SECRET_NAME.search(name) for name in (bare if known is None else (known,)))


def bare_secret(override: str) -> str:
    """Return the key of a ``key=value`` command line text whose value is a secret; else empty."""
    name, _, value = override.partition("=")
    return name if value and not value.startswith("@") and is_secret(name) else ""


def redacted(text: str) -> str:
    """Hide what looks like a secret in a text; rather too much than too little."""
    shown = _NAMED.sub(rf"\1\2{_STARS}", text)
    shown = _IN_ADDRESS.sub(rf"\1:{_STARS}@", shown)
    return _WITH_SCHEME.sub(rf"\1:\2:{_STARS}", shown)


def shown_value(key: str, value: str) -> str:
    """Return a setting's value for people; the path of a file that holds a secret is not hidden."""
    if value and is_secret(key) and not value.startswith("@"):
        return HIDDEN
    return redacted(value)

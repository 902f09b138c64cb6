"""Takes secrets out of texts that are written down for many to read."""

import re
from typing import Final

_HIDDEN: Final = "***"

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


def redacted(text: str) -> str:
    """The text without what looks like a secret; rather too much hidden than too little."""
    return _IN_ADDRESS.sub(rf"\1:{_HIDDEN}@", _NAMED.sub(rf"\1\2{_HIDDEN}", text))

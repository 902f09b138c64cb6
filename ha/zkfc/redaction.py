"""Takes secrets out of texts that are written down for many to read."""

import re
from typing import Final

HIDDEN: Final = "***"

_NAMED: Final = re.compile(
    r"(?i)([\w.-]*(?:passw(?:or)?d|passphrase|secret|token|credential|api[_-]?key)[\w.-]*)"
    r"([\"']?\s*[=:]\s*|\s+)(\"[^\"]*\"|'[^']*'|[^\s;,)\"']+)"
)
"""``--password hunter2``, ``api_key=hunter2``, ``"secret": "hunter2"``."""
_IN_ADDRESS: Final = re.compile(r"(\w+://[^\s:/@]*):[^\s@/]+@")
"""``https://user:hunter2@host``."""


def redacted(text: str) -> str:
    """The text without what looks like a secret; rather too much hidden than too little."""
    return _IN_ADDRESS.sub(rf"\1:{HIDDEN}@", _NAMED.sub(rf"\1\2{HIDDEN}", text))

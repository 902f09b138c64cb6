"""Which settings are secrets, and how they and other texts are shown without them.  Pure."""

import re
from typing import Final

from ha.conf.keys.table import KEYS
from ha.conf.keys.unused import NOT_USED

HIDDEN: Final = "(hidden)"
_STARS: Final = "***"

_SECRET_NAME: Final = re.compile(
    r"passw|keypass|secret|credential|api[.-]?key|oauth"
    r"|(^|[.-])(auth|bearer|cookie|token|pass|passphrase|pwd|signature)$"
    r"|(access|private|session|encryption)[.-]?key$|account\.key|[.-]sas\.",
    re.IGNORECASE,
)
"""As Hadoop's hadoop.security.sensitive-config-keys, and what others call such a thing."""
_SUFFIX_PARTS: Final = 2
"""``.<nameservice>`` or ``.<nameservice>.<namenode>``."""

_WORD: Final = r"""(?:"[^"]*"|'[^']*'|[^\s;&|"',)}\]]|[,)}\]](?!\s|$))+"""
"""What a shell takes for one word; what ends a sentence or closes a bracket is no part of it."""
# Names have at most 64 bytes more, and few ways back: a stranger's text of 100 kB, in which each
# word might begin one, took a loop 30 s.
_HIDING: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), shown)
    for pattern, shown in (
        # Authorization: Bearer hunter2;  X-Api-Key: hunter2;  Cookie: id=hunter2
        (
            r"\b((?:proxy-)?authorization|(?:set-)?cookie|x-[\w-]{0,64}?(?:key|token|auth)[\w-]{0,64}+)"
            r"(\s*:\s*)[^\s\"'][^\"'\n]*",
            rf"\1\2{_STARS}",
        ),
        # --password hunter2;  API_KEY='hunter 2';  "secret": "hunter2"
        (
            r"((?:pass(?:w(?:or)?d|phrase|code|key)|pass(?![a-z])|secret|token|credential"
            r"|(?:api|access)[._-]?key|\bpwd)[\w.-]{0,64}+)"
            rf"""(["']?\s*[=:]\s*|\s+(?!-)){_WORD}""",
            rf"\1\2{_STARS}",
        ),
        # https://user:hunter2@host;  https://hunter2@host;  ?sig=hunter2
        (r"(\b\w++://[^\s:/@]*+):[^\s/]+@", rf"\1:{_STARS}@"),
        (r"(https?://)[^\s:/@?]+@", rf"\1{_STARS}@"),
        (rf"\b(sig(?:nature)?=){_WORD}", rf"\1{_STARS}"),
        # digest:user:hunter2, as in ha.zookeeper.auth;  Bearer hunter2
        (
            r"\b(digest|basic|ntlm|plain):([^\s:,;]+):([^\s,;:\"')]+)",
            rf"\1:\2:{_STARS}",
        ),
        (r"\b(bearer|basic|negotiate|ntlm)\s+[\w+/.~=-]+", rf"\1 {_STARS}"),
        (r"(-----BEGIN[ \w]* PRIVATE KEY-----)[^-]*", rf"\1{_STARS}"),
        # -u user:hunter2;  -u 'user:hunter 2'
        (
            r"(?<![\w-])(-u|-{1,2}(?:proxy-)?user)([\s=]*([\"'])[^\s:/\"'=]*:)(?:(?!\3).)*",
            rf"\1\2{_STARS}",
        ),
        (
            rf"(?<![\w-])(-u|-{{1,2}}(?:proxy-)?user)([\s=]*[^\s:/\"'=]*:)(?!//){_WORD}",
            rf"\1\2{_STARS}",
        ),
        # -p hunter2;  -phunter2; but what $NAME is stands elsewhere
        (
            rf"(?<![\w-])(-p)(?!ass(?:w|ph|k|c|in|out|\b))(\s+(?!-)|=?)(?!\$\w|\$\{{){_WORD}",
            rf"\1\2{_STARS}",
        ),
    )
)


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


def redact(text: str) -> str:
    """Hide what looks like a secret in a text; rather too much than too little."""
    for pattern, shown in _HIDING:
        text = pattern.sub(shown, text)
    return text


def shown_value(key: str, value: str) -> str:
    """Return a setting's value for people; the path of a file that holds a secret is not hidden."""
    if value and is_secret(key) and not value.startswith("@"):
        return HIDDEN
    return redact(value)

"""Text in Hadoop's XML: what XML cannot hold is mangled, what it gives meaning to is escaped.

Mangling is Hadoop's (XMLUtils); the escapes are those of the serializer in the JDK, which writes
references also for the C1 controls and for all characters beyond U+FFFF.
"""

import re
from typing import Final

_SPECIAL: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\\\\&<>\x7f-\x9f\ud800-\udfff\ufffe\uffff\U00010000-\U0010ffff]"
)
_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}
_MANGLED: Final = re.compile(r"\\([0-9a-fA-F]{4});")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
JAVA_SPACE: Final = "".join(map(chr, range(0x21)))
"""What Java's String.trim takes away."""


def _escape(found: re.Match[str]) -> str:
    char = found[0]
    entity = _ENTITIES.get(char)
    if entity is not None:
        return entity
    code = ord(char)
    if code > 0xFFFF or 0x7F <= code <= 0x9F:
        return f"&#{code};"
    return f"\\{code:04x};"


def escape(text: str) -> str:
    """Return a text as it stands between two tags."""
    return _SPECIAL.sub(_escape, text)


def unmangle(text: str) -> str:
    """Restore what was mangled, in a text whose XML references the parser has resolved.

    Raises:
        ValueError: if a backslash begins no mangled character.
    """
    if "\\" not in text:
        return text
    if "\\" in _MANGLED.sub("", text):
        raise ValueError("a backslash stands without four hexadecimal digits and a semicolon")
    plain = _MANGLED.sub(lambda found: chr(int(found[1], 16)), text)
    if _SURROGATE.search(plain) is None:
        return plain
    return plain.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")

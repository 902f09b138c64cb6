"""What a command loads before it does anything: the start of each process pays for it.

Held by what is loaded and compiled, since times depend on the machine and on what else it does.
"""

import json
import subprocess
import sys
from typing import Final

import pytest

from ha.cli.main import COMMANDS

_PROGRAM: Final = """
import json, sys

compiled = []

def watch(event, arguments):
    if event == "compile" and arguments[1] in (None, "<string>"):
        frame = sys._getframe(1)
        names = []
        while frame and not frame.f_globals["__name__"].startswith("importlib"):
            names.append(frame.f_globals["__name__"])
            frame = frame.f_back
        compiled.append(names)

sys.addaudithook(watch)
from ha.cli.main import COMMANDS, _load
_load(sys.argv[1], COMMANDS[sys.argv[1]])
json.dump([list(sys.modules), compiled], sys.stdout)
"""
LEFT_OUT: Final = {
    "structlog.tracebacks", "google.protobuf.internal.python_message",
    "google.protobuf.text_format", "http.server", "socketserver", "urllib.request",
    "wsgiref.simple_server",
}  # fmt: skip
"""Parts of libraries that nnha does without; ``ha.lean_imports`` sees to it."""
RARELY_NEEDED: Final = {
    "aiohttp", "cryptography", "difflib", "http.client", "jinja2", "kerberos", "matplotlib",
    "paramiko", "pyarrow", "pyspark", "rich.traceback", "unittest", "xml.sax", "yaml",
}  # fmt: skip
"""A daemon or a command loads these when it first needs them."""
OF_TABLES: Final = {"pygments", "rich"}
HEAVY: Final = LEFT_OUT | RARELY_NEEDED
DOES_WITHOUT: Final = {
    "zkfc": HEAVY | OF_TABLES | {"grpc", "numpy", "shutil", "tempfile"},
    "journalnode": HEAVY | OF_TABLES | {"kazoo", "numpy"},
    "namenode": HEAVY | OF_TABLES | {"kazoo"},
    "datanode": HEAVY | OF_TABLES | {"grpc", "kazoo"},
    "fs": HEAVY | {"grpc", "kazoo", "numpy", "prometheus_client"},
    **dict.fromkeys(
        ("status", "explain", "doctor", "switchover", "history"),
        HEAVY | {"grpc", "numpy", "prometheus_client"},
    ),
}
OURS: Final = ("datanode", "fencing", "files", "ha", "hadoop", "journal", "namenode_sim")
MOST_COMPILED: Final = 150
"""Methods of classes of which a start already makes instances, three for one that is frozen; a
NameNode's start defines 450 classes, of five or six methods each."""


@pytest.mark.parametrize("name", DOES_WITHOUT)
def test_a_start_loads_and_compiles_only_what_it_needs(name: str) -> None:
    assert name in COMMANDS
    told = subprocess.run(
        [sys.executable, "-c", _PROGRAM, name],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    loaded, compiled = json.loads(told.stdout)
    assert not DOES_WITHOUT[name] & set(loaded), DOES_WITHOUT[name] & set(loaded)
    causes = [
        next(caller for caller in callers if caller != "dataclasses")
        for callers in compiled
        if callers[0] == "dataclasses"
    ]
    assert {one for one in causes if one.partition(".")[0] in OURS} == {"ha.record"}
    assert causes.count("ha.record") <= MOST_COMPILED

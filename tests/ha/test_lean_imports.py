"""Libraries that are imported without parts of theirs work, and the parts can be had later."""

import subprocess
import sys

import pytest

_WHOLE_LATER = """
import sys
from ha.lean_imports import import_lean, import_protobuf
import_lean("structlog"); import_lean("prometheus_client"); import_protobuf()
parts = {"rich", "structlog.tracebacks", "http.server", "urllib.request"}
parts.add("google.protobuf.internal.python_message")
assert not parts & set(sys.modules), parts & set(sys.modules)
"""
USES = {
    "the parts that were left out": """
import http.server, socketserver, urllib.error, urllib.request, wsgiref.simple_server, rich.console
import google.protobuf.text_format, structlog.tracebacks
from google.protobuf.internal import python_message
assert structlog.tracebacks.ExceptionDictTransformer().max_frames > 1
assert issubclass(http.server.HTTPServer, socketserver.TCPServer)
assert issubclass(urllib.error.HTTPError, OSError)
assert python_message.GeneratedProtocolMessageType
""",
    "a page of metrics": """
import prometheus_client, prometheus_client.exposition
prometheus_client.Counter("asked", "How often", ["who"]).labels("me").inc()
assert b'asked_total{who="me"} 1.0' in prometheus_client.exposition.generate_latest()
""",
    "messages and their texts": """
from ha.rpc.proto import rpc_header_pb2
from google.protobuf import descriptor_pool, json_format, message_factory, text_format
header = rpc_header_pb2.RPCCallerContextProto(context="x")
assert header.FromString(header.SerializeToString()) == header
assert text_format.MessageToString(header) == 'context: "x"\\n' == str(header)
assert json_format.MessageToDict(header) == {"context": "x"}
assert descriptor_pool.Default().FindMessageTypeByName(header.DESCRIPTOR.full_name)
assert message_factory.GetMessageClass(header.DESCRIPTOR) is type(header)
""",
    "a line with a traceback": """
import structlog
try:
    1 / 0
except ZeroDivisionError:
    structlog.get_logger().exception("it failed")
""",
}


@pytest.mark.parametrize("use", USES)
def test_a_library_that_is_imported_lean_works(use: str) -> None:
    program = [sys.executable, "-c", _WHOLE_LATER + USES[use]]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_messages_in_python_are_whole_where_there_are_no_others() -> None:
    use = _WHOLE_LATER.replace("assert", "#") + USES["messages and their texts"]
    done = subprocess.run(
        [sys.executable, "-c", use], capture_output=True, text=True, check=False, timeout=60,
        env={"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python", "PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr

"""How WebHDFS refuses: Java's exception as JSON, and the status that Hadoop gives it.

See Hadoop's ExceptionHandler: every IOException is 403 but for a file that is not there.  Pure.
"""

import json
from http import HTTPStatus
from typing import Final

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import (
    FILE_NOT_FOUND,
    ILLEGAL_ARGUMENT,
    INVALID_PATH,
    UNSUPPORTED_OPERATION,
)

AUTHORIZATION: Final = "org.apache.hadoop.security.authorize.AuthorizationException"
RUNTIME_EXCEPTION: Final = "java.lang.RuntimeException"
"""Of an error in nnha itself."""
NOT_WITHOUT_TOKEN: Final = (
    "in strict mode no data are read or written over WebHDFS without a ticket or a delegation "
    "token, as a DataNode could not prove for whom it asks: use nnha fs"
)
_STATUS: Final = {
    FILE_NOT_FOUND: HTTPStatus.NOT_FOUND,
    ILLEGAL_ARGUMENT: HTTPStatus.BAD_REQUEST,
    "org.apache.hadoop.HadoopIllegalArgumentException": HTTPStatus.BAD_REQUEST,
    INVALID_PATH: HTTPStatus.BAD_REQUEST,
    UNSUPPORTED_OPERATION: HTTPStatus.BAD_REQUEST,
    RUNTIME_EXCEPTION: HTTPStatus.INTERNAL_SERVER_ERROR,
}


def status_of(java_class: str) -> HTTPStatus:
    """Return the status of an answer with this exception."""
    return _STATUS.get(java_class, HTTPStatus.FORBIDDEN)


def as_json(java_class: str, message: str) -> str:
    """Return Hadoop's JSON of an exception."""
    simple = java_class.rpartition(".")[2].rpartition("$")[2]
    told = {"exception": simple, "javaClassName": java_class, "message": message}
    return json.dumps({"RemoteException": told})


def illegal(message: str) -> RemoteFault:
    return RemoteFault(ILLEGAL_ARGUMENT, message)


def invalid_value(name: str, why: str) -> RemoteFault:
    """Return the refusal of a parameter's value, as ExceptionHandler words it."""
    return illegal(f'Invalid value for webhdfs parameter "{name}": {why}')

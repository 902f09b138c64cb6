"""The delegation token that this process was given, for instance by YARN or Spark."""

import os
from base64 import b64encode
from pathlib import Path
from typing import Final

from ha.conf.errors import ConfigurationError
from ha.conf.reader import beginning
from ha.rpc.sasl.initiation import LoginToken
from hadoop import writable
from hadoop.token_file import tokens_in

TOKEN_FILE: Final = "HADOOP_TOKEN_FILE_LOCATION"
_KIND: Final = "HDFS_DELEGATION_TOKEN"


def login_by(identifier: bytes, password: bytes) -> LoginToken:
    """Return how a token logs in; raise ValueError or IndexError if it names no owner."""
    owner, _ = writable.read_text(identifier, 1)
    return LoginToken(owner, b64encode(identifier).decode(), b64encode(password))


def held_token(nameservice: str) -> LoginToken | None:
    """Return the token for a nameservice in the file that the environment names; None: none.

    Raises:
        ConfigurationError: if the file cannot be read.
    """
    where = os.environ.get(TOKEN_FILE)
    if not where:
        return None
    try:
        for token in tokens_in(beginning(Path(where))):
            if (token.kind, token.service) == (_KIND, f"ha-hdfs:{nameservice}"):
                return login_by(token.identifier, token.password)
    except (OSError, ValueError, IndexError) as problem:
        raise ConfigurationError(
            f"{TOKEN_FILE} names {where}, which is no file of tokens: {problem}. Unset it to call "
            "without a token."
        ) from problem
    return None

"""The environment of a fencing command: the configuration and the target.

See docs/reference/fencing.md#environment-of-a-command.
"""

import re
from collections.abc import Mapping
from typing import Final

from fencing.model import Target

MAX_VALUE_CHARACTERS = 16 * 1024
"""Linux starts no program with a variable of 128 KiB; a character takes up to four bytes."""

_SECRET: Final = re.compile(
    r"password|passwd|secret|credential|[.-](auth|token|pass)$|account\.key|encryption\.key$",
    re.IGNORECASE,
)
"""As Hadoop's hadoop.security.sensitive-config-keys, and ha.zookeeper.auth."""


def is_secret(key: str) -> bool:
    """Whether a configuration key looks as if its value should not be seen by other programs."""
    return _SECRET.search(key) is not None


def command_environment(
    inherited: Mapping[str, str], configuration: Mapping[str, str], target: Target
) -> dict[str, str]:
    """What a command finds: our own environment, every configuration key, and ``target_*``.

    ``configuration`` is the target's own view, its suffixed keys under their generic names.  In
    the names ``.`` and ``-`` become ``_``.  Secret-looking keys are left out, which Hadoop does
    not do.
    """
    exported = {
        _variable(key): value
        for key, value in sorted(configuration.items())
        if _can_be_exported(key, value)
    }
    return {
        **inherited,
        **exported,
        "target_host": target.host,
        "target_port": str(target.port),
        "target_address": f"{target.host}:{target.port}",
        "target_nameserviceid": target.nameservice,
        "target_namenodeid": target.namenode,
    }


def _variable(key: str) -> str:
    return key.replace(".", "_").replace("-", "_")


def _can_be_exported(key: str, value: str) -> bool:
    return (
        bool(key)
        and not is_secret(key)
        and "=" not in key
        and "\0" not in key + value
        and len(value) <= MAX_VALUE_CHARACTERS
    )

"""The environment of a fencing command: the configuration and the target.

See docs/reference/fencing.md#environment-of-a-command.

Pure.
"""

import re
from collections.abc import Mapping
from typing import Final

from fencing.model import Target
from ha.conf.secrets import is_secret, redact

MAX_VALUE_CHARACTERS = 16 * 1024
"""Linux refuses a variable of 128 KiB; a character takes up to 4 bytes."""

INHERITED: Final = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "JAVA_HOME",
     "HADOOP_HOME", "HADOOP_CONF_DIR"}
)  # fmt: skip
"""The variables that a command inherits from us, in addition to those of the locale."""
DEFAULT_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STEERING: Final = re.compile(
    r"(BASH|LD_|LC_|PYTHON|PERL|RUBY|target_).*"
    r"|ENV|IFS|SHELLOPTS|PS[0-4]|CDPATH|GLOBIGNORE|PROMPT_COMMAND|POSIXLY_CORRECT|NODE_OPTIONS"
)
"""Variables that change the behaviour of bash or of a program that it starts."""


def command_environment(
    inherited: Mapping[str, str], configuration: Mapping[str, str], target: Target
) -> dict[str, str]:
    """Return a command's environment: some of our variables, the configuration, and ``target_*``.

    ``configuration`` has the target's suffixed keys under their generic names.  ``.`` and ``-`` in
    a key become ``_``.  Unlike Hadoop, it leaves out keys that look secret, keys that cannot be
    names of variables, and those that change the behaviour of bash.
    """
    exported = {
        _variable(key): redact(value)
        for key, value in sorted(configuration.items())
        if _can_be_exported(key, value)
    }
    return {
        **exported,
        "PATH": DEFAULT_PATH,
        **{name: value for name, value in inherited.items() if _is_inherited(name)},
        "target_host": target.host,
        "target_port": str(target.port),
        "target_address": f"{target.host}:{target.port}",
        "target_nameserviceid": target.nameservice,
        "target_namenodeid": target.namenode,
    }


def _is_inherited(name: str) -> bool:
    return name in INHERITED or name.startswith("LC_")


def _variable(key: str) -> str:
    return key.replace(".", "_").replace("-", "_")


def _can_be_exported(key: str, value: str) -> bool:
    name = _variable(key)
    return (
        _IDENTIFIER.fullmatch(name) is not None
        and _STEERING.fullmatch(name) is None
        and not _is_inherited(name)
        and not is_secret(key)
        and "\0" not in value
        and len(value) <= MAX_VALUE_CHARACTERS
    )

"""Expansion of ``${variable}`` in configured values, by Hadoop's own rules (Configuration.java).

Pure.
"""

import re
from collections.abc import Callable, Mapping

MAX_SUBSTITUTIONS = 20
"""Hadoop's MAX_SUBST."""
MAX_EXPANDED_CHARACTERS = 1024 * 1024

VARIABLE = re.compile(r"\$\{([^}$ ]+)\}")


class ExpansionFailed(ValueError):
    """A value refers to others too often or grows too long; the message says which."""


def expand(value: str, lookup: Callable[[str], str | None], environment: Mapping[str, str]) -> str:
    """Replace ``${name}`` and ``${env.NAME}``, ``${env.NAME-or}``, ``${env.NAME:-or}``.

    As in Hadoop: the innermost variable first, a name that is not set ends the expansion and
    stays as it is, and a value that refers back to itself is returned unexpanded.
    Raises ``ExpansionFailed`` after 20 substitutions.
    """
    result = value
    for _ in range(MAX_SUBSTITUTIONS):
        match = VARIABLE.search(result)
        if match is None:
            return result
        name = match[1]
        found = _environment(name, environment) if _is_environment(name) else lookup(name)
        if found is None:
            return result
        if match[0] in found:
            return value
        result = result[: match.start()] + found + result[match.end() :]
        if len(result) > MAX_EXPANDED_CHARACTERS:
            raise ExpansionFailed(f"grows beyond {MAX_EXPANDED_CHARACTERS} characters")
    if VARIABLE.search(result) is None:
        return result
    raise ExpansionFailed(f"needs more than {MAX_SUBSTITUTIONS} substitutions of ${{...}}")


def _is_environment(name: str) -> bool:
    return name.startswith("env.") and len(name) > len("env.")


def _environment(name: str, environment: Mapping[str, str]) -> str | None:
    match = re.fullmatch(r"(.*?)(:-|-)(.*)", name.removeprefix("env."), re.DOTALL)
    if match is None:
        return environment.get(name.removeprefix("env."))
    variable, operator, otherwise = match.groups()
    found = environment.get(variable)
    if found is None or (operator == ":-" and not found):
        return otherwise
    return found

"""Short names of Kerberos principals, by the rules of ``hadoop.security.auth_to_local``.

Equal to Java's KerberosName, but for regular expressions that mean something else in Python: those
are refused when they are read.  Pure.
"""

import re
import warnings
from collections.abc import Sequence
from typing import Final

from ha.record import dataclass
from ha.security.sasl.mechanism import SaslFailure

_PRINCIPAL: Final = re.compile(r"([^/@]+)(?:/([^/@]+))?@([^/@]+)")
_RULE: Final = re.compile(
    r"\s*(?:(DEFAULT)|RULE:\[(\d*):([^\]]*)\](?:\(([^)]*)\))?(?:s/([^/]*)/([^/]*)/(g)?)?)/?(L)?"
)
_PARAMETER: Final = re.compile(r"\$(\d*)")
_SET_WITHIN_SET: Final = re.compile(r"(?:\\.|[^\\\[])*\[(?:\\.|[^\]\\\[])*\[", re.DOTALL)
_REFERENCE: Final = re.compile(r"\\(.)|\$(\d+)|([\\$])", re.DOTALL)


class BadRules(ValueError):
    """Rules that cannot be read; ``str`` is for the operator who wrote them."""


class NoShortName(SaslFailure):
    """No rule gives a principal a short name that can be used; ``str`` has Java's words."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; ``components`` is 0 for DEFAULT, which has nothing else."""

    text: str
    components: int = 0
    form: str = ""
    whole: re.Pattern[str] | None = None
    part: re.Pattern[str] | None = None
    replacement: str = ""
    count: int = 0
    lower: bool = False

    def applied(self, names: Sequence[str], realm: str) -> str | None:
        """Return what becomes of a name, realm first; None if the rule is not for it."""
        if not self.components:
            return names[1] if names[0] == realm else None
        if len(names) - 1 != self.components:
            return None
        base = _PARAMETER.sub(lambda found: self._parameter(found[1], names), self.form)
        if self.whole is not None and not self.whole.fullmatch(base):
            return None
        return base if self.part is None else self.part.sub(self.replacement, base, self.count)

    def _parameter(self, digits: str, names: Sequence[str]) -> str:
        if not digits or len(digits) > 9 or int(digits) >= len(names):
            raise NoShortName(f"bad format in username mapping in {self.text}")
        return names[int(digits)]


@dataclass(frozen=True, slots=True)
class NameRules:
    """All rules of a cluster; ``simple``: names have no / and @ (the mechanism ``hadoop``).

    ``realm`` is that in which DEFAULT applies.
    """

    rules: tuple[Rule, ...]
    simple: bool
    realm: str

    def short_name(self, principal: str) -> str:
        """Return the short name by the first rule that applies; raise NoShortName."""
        parts = _PRINCIPAL.fullmatch(principal)
        if parts is None or not principal.isprintable():
            raise NoShortName(f"Malformed Kerberos name: {principal}")
        first, second, realm = parts.groups()
        for rule in self.rules:
            found = rule.applied([realm, first, *filter(None, [second])], self.realm)
            if found is None:
                continue
            if self.simple and not {"/", "@"}.isdisjoint(found):
                raise NoShortName(f"Non-simple name {found} after auth_to_local rule {rule.text}")
            if not found:
                raise NoShortName(f"Empty name after auth_to_local rule {rule.text}")
            return found.lower() if rule.lower else found
        if self.simple:
            raise NoShortName(f"No rules applied to {principal}")
        return principal


def parse_rules(text: str, mechanism: str, realm: str) -> NameRules:
    """Read the rules of a configuration; raise BadRules."""
    if mechanism.lower() not in ("hadoop", "mit"):
        raise BadRules(f"{mechanism!r} is no mechanism: it must be hadoop or mit")
    rules, rest = [], text.strip()
    while rest:
        found = _RULE.match(rest)
        if found is None:
            raise BadRules(f"{rest[:80]!r} begins with no rule: neither DEFAULT nor RULE:[n:...]")
        rules.append(_rule(found))
        rest = rest[found.end() :]
    return NameRules(tuple(rules), mechanism.lower() == "hadoop", realm)


def _rule(found: re.Match[str]) -> Rule:
    text = found[0].strip()
    default, components, form, whole, part, target, repeat, lower = found.groups()
    if default:
        return Rule("DEFAULT")
    if not components:
        raise BadRules(f"{text}: RULE:[ needs a number of components")
    pattern = None if part is None else _pattern(part, text)
    return Rule(
        text, int(components) or -1, form,  # no name has 0 components
        None if whole is None else _pattern(whole, text),
        pattern,
        "" if pattern is None else _replacement(target, pattern.groups, text),
        0 if repeat else 1,
        lower is not None,
    )  # fmt: skip


def _pattern(java: str, rule: str) -> re.Pattern[str]:
    """Compile an expression of Java's; raise BadRules where Python reads it in another way."""
    if _SET_WITHIN_SET.match(java):
        raise BadRules(f"{rule}: {java!r} has a set within a set, which only Java knows")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # for set operations, which are Java's alone
            return re.compile(java, re.ASCII)
    except (re.error, FutureWarning, RecursionError, OverflowError) as failure:
        raise BadRules(f"{rule}: {java!r} cannot be used here: {failure}") from failure


def _replacement(java: str, groups: int, rule: str) -> str:
    """Return a replacement as Python writes it."""

    def piece(found: re.Match[str]) -> str:
        escaped, digits, stray = found.groups()
        if escaped is not None:
            return escaped.replace("\\", r"\\")
        if stray is not None:
            raise BadRules(f"{rule}: {java!r} ends in {stray} or has no group behind it")
        taken = 1  # Java takes as many digits as there are groups for
        while taken < len(digits) and int(digits[: taken + 1]) <= groups:
            taken += 1
        if int(digits[:taken]) > groups:
            raise BadRules(f"{rule}: {java!r} names group {digits[:taken]} of {groups}")
        return rf"\g<{digits[:taken]}>{digits[taken:]}"

    return _REFERENCE.sub(piece, java)

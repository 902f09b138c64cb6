"""Short names as Java's KerberosName gives them."""

import random
import string
from contextlib import suppress

import pytest

from ha.security.kerberos.auth_to_local import BadRules, NameRules, NoShortName, parse_rules

REALM = "EXAMPLE.COM"


def short(rules: str, principal: str, mechanism: str = "hadoop") -> str:
    try:
        return parse_rules(rules, mechanism, REALM).short_name(principal)
    except NoShortName as failure:
        return f"refused: {failure}"


@pytest.mark.parametrize(
    ("rules", "principal", "hadoop", "mit"),
    [
        ("DEFAULT", "alice@EXAMPLE.COM", "alice", "alice"),
        ("DEFAULT", "nn/host@EXAMPLE.COM", "nn", "nn"),
        ("DEFAULT", "alice@OTHER", "refused: No rules applied to alice@OTHER", "alice@OTHER"),
        ("", "alice@EXAMPLE.COM", "refused: No rules applied to alice@EXAMPLE.COM",
         "alice@EXAMPLE.COM"),
        ("RULE:[1:$1@$0](.*@OTHER)s/@.*//", "alice@OTHER", "alice", "alice"),
        ("RULE:[2:$1@$0](nn@EXAMPLE[.]COM)s/.*/hdfs/ DEFAULT", "nn/h@EXAMPLE.COM", "hdfs", "hdfs"),
        ("RULE:[2:$1@$0](nn@EXAMPLE.COM)s/.*/hdfs/\nDEFAULT", "dn/h@EXAMPLE.COM", "dn", "dn"),
        ("RULE:[1:$1]DEFAULT", "alice@OTHER", "alice", "alice"),
        ("RULE:[1:$1]", "nn/h@EXAMPLE.COM", "refused: No rules applied to nn/h@EXAMPLE.COM",
         "nn/h@EXAMPLE.COM"),
        ("RULE:[1:$1/L]", "ALICE@R", "refused: Non-simple name ALICE/L after auth_to_local rule "
         "RULE:[1:$1/L]", "ALICE/L"),
        ("RULE:[1:$1]/L", "ALICE@R", "alice", "alice"),
        ("RULE:[2:$2;$1](^h.*;nn$)s/(.*);(.*)/$2-$1/", "nn/h@R", "nn-h", "nn-h"),
        ("RULE:[1:$1]s/a/b/", "aaa@R", "baa", "baa"),
        ("RULE:[1:$1]s/a/b/g", "aaa@R", "bbb", "bbb"),
        ("RULE:[1:$1](a)s/a/b/", "aa@R", "refused: No rules applied to aa@R", "aa@R"),
        ("RULE:[1:$1]s/(a)/$1$10/", "a@R", "aa0", "aa0"),
        ("RULE:[1:$1]s/a/\\$x\\\\/", "a@R", "$x\\", "$x\\"),
        ("RULE:[1:$1]s/x*/-/g", "axb@R", "-a--b-", "-a--b-"),
        ("RULE:[1:$1]s/(b)?a/<$1>/", "a@R", "<>", "<>"),
        ("RULE:[1:$3]", "a@R", "refused: bad format in username mapping in RULE:[1:$3]",
         "refused: bad format in username mapping in RULE:[1:$3]"),
        ("RULE:[1:$]", "a@R", "refused: bad format in username mapping in RULE:[1:$]",
         "refused: bad format in username mapping in RULE:[1:$]"),
        ("RULE:[1:$1]s/.*//", "a@R", "refused: Empty name after auth_to_local rule "
         "RULE:[1:$1]s/.*//", "refused: Empty name after auth_to_local rule RULE:[1:$1]s/.*//"),
        ("RULE:[1:$1@$0]", "a@R", "refused: Non-simple name a@R after auth_to_local rule "
         "RULE:[1:$1@$0]", "a@R"),
        ("DEFAULT", "a/b/c@EXAMPLE.COM", "refused: Malformed Kerberos name: a/b/c@EXAMPLE.COM",
         "refused: Malformed Kerberos name: a/b/c@EXAMPLE.COM"),
        ("DEFAULT", "a@b@EXAMPLE.COM", "refused: Malformed Kerberos name: a@b@EXAMPLE.COM",
         "refused: Malformed Kerberos name: a@b@EXAMPLE.COM"),
        ("DEFAULT", "root\n@EXAMPLE.COM", "refused: Malformed Kerberos name: root\n@EXAMPLE.COM",
         "refused: Malformed Kerberos name: root\n@EXAMPLE.COM"),
        ("DEFAULT", "alice", "refused: Malformed Kerberos name: alice",
         "refused: Malformed Kerberos name: alice"),
        ("RULE:[1:$1](\\w+)", "é@R", "refused: No rules applied to é@R", "é@R"),
    ],
)  # fmt: skip
def test_names(rules: str, principal: str, hadoop: str, mit: str) -> None:
    assert short(rules, principal) == hadoop
    assert short(rules, principal, "MIT") == mit


@pytest.mark.parametrize(
    "rules",
    [
        "RULE:[1:$1](\\p{L}+)",
        "RULE:[1:$1]([a-z&&[^b]])",
        "RULE:[1:$1]([a[bc]])",
        "RULE:[1:$1](\\Qa\\E)",
        "RULE:[1:$1](*)",
        "RULE:[:$1]",
        "RULE:[1:$1]s/a/$2/",
        "RULE:[1:$1]s/a/$/",
        "RULE:[1:$1]s/a/\\/",
        "NONE",
        "DEFAULT,DEFAULT",
        "RULE:[1:$1",
        "default",
    ],
)
def test_rules_that_are_refused_at_the_start(rules: str) -> None:
    with pytest.raises(BadRules):
        parse_rules(rules, "hadoop", REALM)


def test_an_unknown_mechanism_is_refused() -> None:
    with pytest.raises(BadRules, match="hadoop or mit"):
        parse_rules("DEFAULT", "heimdal", REALM)


PIECES = (
    "RULE:[1:$1]",
    "RULE:[2:$1@$0]",
    "DEFAULT",
    "s/",
    "/",
    "/g",
    "/L",
    "(",
    ")",
    "$",
    "[",
    "]",
)


@pytest.mark.parametrize(
    "count", [500, pytest.param(10_000, marks=pytest.mark.long)], ids=["some", "many"]
)
def test_whatever_the_rules_a_name_is_simple_or_refused(count: int) -> None:
    for seed in range(count):
        rng = random.Random(seed)
        words = [*PIECES, *rng.choices(string.printable, k=6)]
        text = "".join(rng.choices(words, k=rng.randint(1, 12)))
        with suppress(BadRules, NoShortName):
            rules: NameRules = parse_rules(text, "hadoop", REALM)
            name = rules.short_name("".join(rng.choices("ab/@\\.R", k=6)) + f"@{REALM}")
            assert name
            assert "/" not in name
            assert "@" not in name

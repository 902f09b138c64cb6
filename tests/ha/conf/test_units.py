"""Parsers of single values: tables of good and bad texts, and what holds for any text."""

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ha.conf.errors import BadValue
from ha.conf.keys import units
from ha.conf.keys.units import Ensemble, HostPort, Unset

Parser = Callable[[str], object]


def by(make: Callable[..., Parser], *arguments: object, **named: object) -> Parser:
    return lambda text: make(*arguments, **named)(text)


GOOD: dict[str, tuple[Parser, str, object]] = {
    "seconds": (by(units.duration, "ms"), "10s", 10.0),
    "a bare number has the key's unit": (by(units.duration, "ms"), "250", 0.25),
    "minutes": (by(units.duration, "s"), "1m", 60.0),
    "days, capital": (by(units.duration, "s"), " 2 D ", 172800.0),
    "no time": (by(units.duration, "s"), "0", 0.0),
    "the shortest that is longer than none": (by(units.duration, "s", zero=False), "1", 1.0),
    "negative where allowed": (by(units.duration, "s", negative=True), "-1", -1.0),
    "a duration of forty characters": (by(units.duration, "s"), f"{7:039}s", 7.0),
    "plain bytes": (units.size, "1048576", 1048576),
    "no bytes": (units.size, "0", 0),
    "64k": (units.size, "64k", 65536),
    "64KB": (units.size, "64KB", 65536),
    "2g": (units.size, "2g", 2 << 30),
    "a size of forty characters": (units.size, f"{7:040}", 7),
    "decimal": (by(units.whole), "10", 10),
    "hexadecimal": (by(units.whole), "0x10", 16),
    "hexadecimal, negative and capital": (by(units.whole), "-0X1F", -31),
    "a whole number of forty characters": (by(units.whole), f"{7:040}", 7),
    "the least": (by(units.whole, at_least=1), "1", 1),
    "the most": (by(units.whole, at_most=5), "5", 5),
    "true": (units.flag, " TRUE ", True),
    "false": (units.flag, "false", False),
    "a list": (units.words, " a, ,b ,", ("a", "b")),
    "nothing": (units.optional_text, "  ", None),
    "no number": (by(units.optional, units.size), "  ", None),
    "a number that may be left out": (by(units.optional, units.size), "1k", 1024),
    "one of two words": (by(units.one_of, "grpc", "rpc"), " rpc ", "rpc"),
    "users with their groups": (
        units.group_overrides,
        " ann = a, b ; dr.who=; ",
        {"ann": {"a", "b"}, "dr.who": set()},
    ),
    "an address": (by(units.host_port), "nn1:8020", HostPort("nn1", 8020)),
    "an address without port": (by(units.host_port, default_port=9), "nn1", HostPort("nn1", 9)),
    "an IPv6 address": (by(units.host_port), "[::1]:80", HostPort("::1", 80)),
    "an IPv6 address without port": (
        by(units.host_port, default_port=9),
        "[::1]",
        HostPort("::1", 9),
    ),
    "the highest port": (by(units.host_port), "h:65535", HostPort("h", 65535)),
    "the longest part of a host": (by(units.host_port), f"{'n' * 63}:1", HostPort("n" * 63, 1)),
    "no address": (by(units.optional_host_port), " ", None),
    "an address that may be left out": (by(units.optional_host_port), "h:1", HostPort("h", 1)),
    "an address that is switched off": (units.host_port_or_off, " off ", Unset.OFF),
    "an address that the program chooses": (units.host_port_or_off, " ", Unset.CHOSEN),
    "an address that is chosen": (units.host_port_or_off, "h:1", HostPort("h", 1)),
    "an ensemble": (
        units.ensemble,
        " a:1, b,[::1] ",
        Ensemble((HostPort("a", 1), HostPort("b", 2181), HostPort("::1", 2181))),
    ),
    "an ensemble with a chroot": (
        units.ensemble,
        "a,[::1]:2182/app/hadoop",
        Ensemble((HostPort("a", 2181), HostPort("::1", 2182)), "/app/hadoop"),
    ),
    "an ensemble whose chroot is the root": (
        units.ensemble,
        "a/",
        Ensemble((HostPort("a", 2181),)),
    ),
    "no ensemble": (units.ensemble, "", Ensemble()),
    "the longest session": (
        by(units.duration, "ms", at_most=units.INT / 1000),
        "2147483647",
        2147483.647,
    ),
    "a duration of Java's for ever": (
        by(units.duration, "ms"),
        "9223372036854775807",
        units.LONGEST_SECONDS,
    ),
    "Java's largest size": (units.size, "9223372036854775807", 2**63 - 1),
    "Java's largest number": (by(units.whole), "9223372036854775807", 2**63 - 1),
    "a fraction": (units.fraction, "0.999", 0.999),
    "a fraction of Java's": (units.fraction, "0.5f", 0.5),
    "no part": (units.fraction, "0", 0.0),
    "a float of Java's": (units.java_float, " 0.999f ", 0.999),
    "a negative float of Java's": (units.java_float, "-1e1D", -10.0),
    "a float of forty characters": (units.java_float, f"{0.5:040}", 0.5),
}

BAD: dict[str, tuple[Parser, str]] = {
    "a chroot after each server": (units.ensemble, "a:2181/app,b:2181/app"),
    "a chroot that ends in a slash": (units.ensemble, "a:2181/app/"),
    "a chroot with an empty name": (units.ensemble, "a:2181/app//x"),
    "a chroot with a relative name": (units.ensemble, "a:2181/../app"),
    "a chroot with a control character": (units.ensemble, "a:2181/a\x07"),
    "a chroot without servers": (units.ensemble, "/app"),
    "a session beyond int32": (
        by(units.duration, "ms", at_most=units.INT / 1000),
        "2147483648",
    ),
    "a session beyond int32 in days": (
        by(units.duration, "ms", at_most=units.INT / 1000),
        "25d",
    ),
    "a duration beyond a long": (by(units.duration, "ms"), "9223372036854775808"),
    "a size beyond a long": (units.size, "8e"),
    "a number beyond a long": (by(units.whole), "9223372036854775808"),
    "a word for a duration": (by(units.duration, "ms"), "soon"),
    "a decimal duration": (by(units.duration, "s"), "1.5s"),
    "a negative duration": (by(units.duration, "s"), "-1"),
    "a duration of nothing": (by(units.duration, "s", zero=False), "0"),
    "an unknown unit": (by(units.duration, "s"), "10w"),
    "other digits than ours": (by(units.duration, "s"), "\u0663"),
    "a long duration": (by(units.duration, "s"), f"{7:041}"),
    "a negative size": (units.size, "-1k"),
    "an unknown size": (units.size, "10q"),
    "a long size": (units.size, f"{7:041}"),
    "yes": (units.flag, "yes"),
    "a word for a number": (by(units.whole), "few"),
    "too small": (by(units.whole, at_least=1), "0"),
    "too small between two": (by(units.whole, at_least=1, at_most=5), "0"),
    "too large": (by(units.whole, at_most=5), "6"),
    "too large between two": (by(units.whole, at_least=1, at_most=5), "6"),
    "a long number": (by(units.whole), f"{7:041}"),
    "another word": (by(units.one_of, "grpc", "rpc"), "RPC"),
    "groups of nobody": (units.group_overrides, " =a,b"),
    "two signs for one user": (units.group_overrides, "ann=a=b"),
    "a port above 65535": (by(units.host_port), "h:65536"),
    "a port that is a word": (by(units.host_port), "h:http"),
    "no port": (by(units.host_port), "h"),
    "no host": (by(units.host_port), ":80"),
    "an IPv6 address without brackets": (by(units.host_port), "::1:80"),
    "an IPv6 address with one bracket": (by(units.host_port, default_port=9), "[::1"),
    "an IPv6 address with more behind it": (by(units.host_port), "[::1]x80"),
    "an IPv6 address without port": (by(units.host_port), "[::1]"),
    "an empty part of a host": (by(units.host_port), "nn1..example:80"),
    "a part of a host too long for DNS": (by(units.host_port), f"{'n' * 64}.example:80"),
    "a URL": (by(units.host_port), "http://h:80"),
    "a path": (by(units.host_port), "h/x:80"),
    "two addresses": (by(units.host_port), "a:1,b:2"),
    "neither an address nor off": (units.host_port_or_off, "OFF"),
    "a negative fraction": (units.fraction, "-0.5"),
    "not a number": (units.fraction, "nan"),
    "a fraction beyond all numbers": (units.fraction, "1e999"),
    "not a float of Java's": (units.java_float, "nan"),
    "a long float": (units.java_float, f"{0.5:041}"),
}


@pytest.mark.parametrize("case", GOOD.values(), ids=GOOD.keys())
def test_reads(case: tuple[Parser, str, object]) -> None:
    parse, text, expected = case
    assert parse(text) == expected


@pytest.mark.parametrize("case", BAD.values(), ids=BAD.keys())
def test_refuses_and_says_what_it_must_be(case: tuple[Parser, str]) -> None:
    parse, text = case
    with pytest.raises(BadValue, match=r"^must be"):
        parse(text)


def test_an_address_that_is_refused_is_told_the_shape_and_the_port_that_may_be_left_out() -> None:
    with pytest.raises(BadValue, match=r"^must be host:port$"):
        units.host_port()("h")
    with pytest.raises(BadValue, match=r"^must be host or host:9; .* 1 to 63 characters"):
        units.host_port(default_port=9)(f"{'n' * 64}")


PARSERS = [parse for parse, *_ in GOOD.values()]


@given(st.sampled_from(PARSERS), st.text() | st.from_regex(r"[-+]?[0-9]+[a-zA-Z:\[\]]*"))
def test_no_text_raises_anything_but_a_bad_value(parse: Parser, text: str) -> None:
    with contextlib.suppress(BadValue):
        parse(text)


@given(st.integers(0, 10**15), st.sampled_from(["ns", "us", "ms", "s", "m", "h", "d"]))
def test_a_unit_written_out_means_the_same_as_one_implied(number: int, unit: str) -> None:
    other = units.duration("s" if unit != "s" else "h")
    assert other(f"{number}{unit}") == units.duration(unit)(str(number))


@given(st.integers(0, 7), st.sampled_from("kmgtpe"))
def test_sizes_grow_by_1024(number: int, unit: str) -> None:
    larger = {"k": 1, "m": 2, "g": 3, "t": 4, "p": 5, "e": 6}[unit]
    assert units.size(f"{number}{unit}") == number * 1024**larger


@given(
    st.from_regex(
        r"[a-z][a-z0-9-]{0,9}(\.[a-z0-9-]{1,9}){0,2}\.?|[0-9a-f]{1,4}:(:[0-9a-f]{1,4}){1,6}",
        fullmatch=True,
    ),
    st.integers(0, 65535),
)
def test_an_address_reads_back_as_it_prints(host: str, port: int) -> None:
    assert units.host_port()(str(HostPort(host, port))) == HostPort(host, port)

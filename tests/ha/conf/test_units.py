"""Parsers of single values: tables of good and bad texts, and what holds for any text."""

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ha.conf.errors import BadValue
from ha.conf.keys import units
from ha.conf.keys.units import HostPort

GOOD: dict[str, tuple[Callable[[str], object], str, object]] = {
    "seconds": (units.duration("ms"), "10s", 10.0),
    "a bare number has the key's unit": (units.duration("ms"), "250", 0.25),
    "minutes": (units.duration("s"), "1m", 60.0),
    "days, capital": (units.duration("s"), " 2 D ", 172800.0),
    "negative where allowed": (units.duration("s", negative=True), "-1", -1.0),
    "plain bytes": (units.size, "1048576", 1048576),
    "64k": (units.size, "64k", 65536),
    "64KB": (units.size, "64KB", 65536),
    "2g": (units.size, "2g", 2 << 30),
    "hexadecimal": (units.whole(), "0x10", 16),
    "true": (units.flag, " TRUE ", True),
    "false": (units.flag, "false", False),
    "a list": (units.words, " a, ,b ,", ("a", "b")),
    "nothing": (units.optional_text, "  ", None),
    "an address": (units.host_port(), "nn1:8020", HostPort("nn1", 8020)),
    "an address without port": (units.host_port(default_port=9), "nn1", HostPort("nn1", 9)),
    "an IPv6 address": (units.host_port(), "[::1]:80", HostPort("::1", 80)),
    "a fraction": (units.fraction, "0.999", 0.999),
}

BAD: dict[str, tuple[Callable[[str], object], str]] = {
    "a word for a duration": (units.duration("ms"), "soon"),
    "a decimal duration": (units.duration("s"), "1.5s"),
    "a negative duration": (units.duration("s"), "-1"),
    "a duration of nothing": (units.duration("s", zero=False), "0"),
    "an unknown unit": (units.duration("s"), "10w"),
    "other digits than ours": (units.duration("s"), "\u0663"),
    "a negative size": (units.size, "-1k"),
    "an unknown size": (units.size, "10q"),
    "yes": (units.flag, "yes"),
    "too small": (units.whole(at_least=1), "0"),
    "too large": (units.whole(at_most=5), "6"),
    "a number of a thousand digits": (units.whole(), "1" * 1000),
    "a port above 65535": (units.host_port(), "h:65536"),
    "a port that is a word": (units.host_port(), "h:http"),
    "no port": (units.host_port(), "h"),
    "no host": (units.host_port(), ":80"),
    "an IPv6 address without brackets": (units.host_port(), "::1:80"),
    "an empty part of a host": (units.host_port(), "nn1..example:80"),
    "a part of a host too long for DNS": (units.host_port(), f"{'n' * 64}.example:80"),
    "a URL": (units.host_port(), "http://h:80"),
    "two addresses": (units.host_port(), "a:1,b:2"),
    "a negative fraction": (units.fraction, "-0.5"),
    "not a number": (units.fraction, "nan"),
}


@pytest.mark.parametrize("case", GOOD.values(), ids=GOOD.keys())
def test_reads(case: tuple[Callable[[str], object], str, object]) -> None:
    parse, text, expected = case
    assert parse(text) == expected


@pytest.mark.parametrize("case", BAD.values(), ids=BAD.keys())
def test_refuses_and_says_what_it_must_be(case: tuple[Callable[[str], object], str]) -> None:
    parse, text = case
    with pytest.raises(BadValue, match=r"^must be"):
        parse(text)


PARSERS: list[Callable[[str], object]] = [
    *{parse for parse, *_ in GOOD.values()},
    units.hosts_and_ports(default_port=1),
    units.optional_host_port(),
]


@given(st.sampled_from(PARSERS), st.text() | st.from_regex(r"[-+]?[0-9]+[a-zA-Z:\[\]]*"))
def test_no_text_raises_anything_but_a_bad_value(parse: Callable[[str], object], text: str) -> None:
    with contextlib.suppress(BadValue):
        parse(text)


@given(st.integers(0, 10**15), st.sampled_from(["ns", "us", "ms", "s", "m", "h", "d"]))
def test_a_unit_written_out_means_the_same_as_one_implied(number: int, unit: str) -> None:
    other = units.duration("s" if unit != "s" else "h")
    assert other(f"{number}{unit}") == units.duration(unit)(str(number))


@given(st.integers(0, 10**6), st.sampled_from("kmgtpe"))
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

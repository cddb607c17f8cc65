"""Units: what is parsed, what is refused, and that printing loses nothing that people compare."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualcoll.errors import InputError
from dualcoll.units import (
    format_bandwidth,
    format_fraction,
    format_size,
    format_time,
    parse_bandwidth,
    parse_fraction,
    parse_size,
    parse_time,
)

UNIT_HINT = 'write it with its unit, such as "50GB/s" (bytes) or "400Gb/s" (bits)'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("400Gb/s", 50e9),
        ("400 Gbit/s", 50e9),
        ("400Gbits/s", 50e9),
        ("400Gbps", 50e9),
        ("50GB/s", 50e9),
        ("50 Gbytes/s", 50e9),
        ("50GBps", 50e9),
        ("200GiB/s", 200 * 2.0**30),
        ("1.5TB/s", 1.5e12),
        ("12.5e3MB/s", 12.5e9),
        (".5kB/s", 500.0),
        ("1B/s", 1.0),
    ],
)
def test_bandwidth_spellings(text: str, expected: float) -> None:
    """Bits and bytes, decimal and binary prefixes mean what network people and nccl-tests mean by them."""
    assert parse_bandwidth(text) == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("50", f"bandwidth '50' has no unit; {UNIT_HINT}"),
        (50, f"bandwidth 50 has no unit; {UNIT_HINT}"),
        (50.0, f"bandwidth 50.0 has no unit; {UNIT_HINT}"),
        ("50G", f"cannot read bandwidth '50G'; {UNIT_HINT}"),
        ("50 GT/s", f"cannot read bandwidth '50 GT/s'; {UNIT_HINT}"),
        ("-5GB/s", f"cannot read bandwidth '-5GB/s'; {UNIT_HINT}"),
        ("nan", f"cannot read bandwidth 'nan'; {UNIT_HINT}"),
        ("infGB/s", f"cannot read bandwidth 'infGB/s'; {UNIT_HINT}"),
        ("1e9999GB/s", f"cannot read bandwidth '1e9999GB/s'; {UNIT_HINT}"),
        (None, f"cannot read bandwidth None; {UNIT_HINT}"),
        ("0GB/s", "bandwidth '0GB/s' is out of range; a link carries between 1 B/s and 1e18 B/s"),
        ("1e10GB/s", "bandwidth '1e10GB/s' is out of range; a link carries between 1 B/s and 1e18 B/s"),
    ],
)
def test_unusable_bandwidths(value: object, message: str) -> None:
    """A bandwidth without unit, or with a value that no link has, is refused with what to write instead."""
    with pytest.raises(InputError) as caught:
        parse_bandwidth(value)
    assert str(caught.value) == message


@given(st.floats(1.0, 1e18))
def test_bandwidth_in_bytes_is_exact(value: float) -> None:
    """The repr of a float with B/s reads back as the same float."""
    assert parse_bandwidth(f"{value!r}B/s") == value


@given(st.floats(1.0, 1e17))
def test_printed_bandwidth_reads_back(value: float) -> None:
    """What is printed can be pasted into a file, with six digits kept."""
    assert parse_bandwidth(format_bandwidth(value)) == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2us", 2e-6),
        ("1.3 us", 1.3e-6),
        ("2µs", 2e-6),
        ("350ns", 350e-9),
        ("1ms", 1e-3),
        ("2s", 2.0),
        ("1min", 60.0),
        (0, 0.0),
    ],
)
def test_time_spellings(text: object, expected: float) -> None:
    """Times carry a unit; only zero needs none."""
    assert parse_time(text) == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("2", "cannot read time '2'; write it with its unit, such as \"2us\""),
        (2, 'cannot read time 2; write it with its unit, such as "2us"'),
        (False, 'cannot read time False; write it with its unit, such as "2us"'),
        ("-1us", "cannot read time '-1us'; write it with its unit, such as \"2us\""),
        ("1e9s", "time '1e9s' is out of range; at most one day is accepted"),
    ],
)
def test_unusable_times(value: object, message: str) -> None:
    """A time without unit, below zero or beyond a day is refused."""
    with pytest.raises(InputError) as caught:
        parse_time(value)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1G", 2**30),
        ("64m", 64 * 2**20),
        ("1GiB", 2**30),
        ("500MB", 500 * 10**6),
        ("4096", 4096),
        (7, 7),
        ("1.5K", 1536),
        ("3B", 3),
    ],
)
def test_size_spellings(text: object, expected: int) -> None:
    """Bare suffixes are binary as in nccl-tests; KiB and MB mean what they say."""
    assert parse_size(text) == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("1X", 'cannot read size \'1X\'; write bytes, such as "64M", "1GiB" or "500MB"'),
        (True, 'cannot read size True; write bytes, such as "64M", "1GiB" or "500MB"'),
        ("0", "size '0' is out of range; a message has 1 to 2**63 - 1 bytes"),
        ("9999999999G", "size '9999999999G' is out of range; a message has 1 to 2**63 - 1 bytes"),
    ],
)
def test_unusable_sizes(value: object, message: str) -> None:
    """A size that is no number of bytes is refused."""
    with pytest.raises(InputError) as caught:
        parse_size(value)
    assert str(caught.value) == message


def test_fractions() -> None:
    """A gap is written in percent or as a plain number, and is below 1."""
    assert parse_fraction("1%") == parse_fraction("0.01") == parse_fraction(0.01) == 0.01
    for bad in ("100%", "1", "-0.1", "nan", "1e999", ""):
        with pytest.raises(InputError) as caught:
            parse_fraction(bad)
        assert str(caught.value) == f'cannot use {bad!r} as a fraction; write "1%" or "0.01"; it is in [0, 1)'


def test_printing() -> None:
    """Printed numbers use the unit that reads best."""
    assert format_bandwidth(258.0645e9) == "258.065 GB/s"
    assert format_bandwidth(12e12) == "12 TB/s"
    assert format_bandwidth(2.0) == "2 B/s"
    assert format_time(1.3e-6) == "1.3 us"
    assert format_time(350e-9) == "350 ns"
    assert format_time(0.0) == "0 s"
    assert format_size(2**30) == "1 GiB"
    assert format_size(12) == "12 B"
    assert format_fraction(0.0123) == "1.23 %"
    assert format_fraction(3e-7) == "3.0e-07"


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text makes a parser fail otherwise than by saying so."""
    for parse in (parse_bandwidth, parse_time, parse_size, parse_fraction):
        with suppress(InputError):
            assert parse(text) >= 0

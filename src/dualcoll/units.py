"""Units, parsed and printed in this one place.

Inside dualcoll everything is seconds, bytes and bytes/s (floats; sizes are ints). ``GB/s`` is 1e9 bytes/s, as in
nccl-tests; ``Gb/s`` is 1e9 bits/s, as network people write; ``GiB/s`` is 2**30 bytes/s.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

from dualcoll.errors import InputError

__all__ = [
    "format_bandwidth",
    "format_fraction",
    "format_size",
    "format_time",
    "parse_bandwidth",
    "parse_fraction",
    "parse_size",
    "parse_time",
]

MAX_BANDWIDTH = 1e18  # bytes/s; nothing built comes near
MIN_BANDWIDTH = 1.0
MAX_TIME = 86_400.0  # seconds
MAX_SIZE = 2**63 - 1  # bytes

_DIGITS = "[0-9]{1,400}"  # more are no quantity, and Python refuses to read 4300
_NUMBER = rf"(?P<number>{_DIGITS}(?:\.(?:{_DIGITS})?)?(?:[eE][+-]?[0-9]{{1,3}})?|\.{_DIGITS}(?:[eE][+-]?[0-9]{{1,3}})?)"
_DECIMAL = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}
_SCALE = _DECIMAL | _BINARY
_BANDWIDTH = re.compile(rf"{_NUMBER}\s*(?P<scale>[KMGTP]i|[kKMGTP]?)(?P<unit>bits?|b|B|bytes?)(?:/s|/sec|ps)")
_TIME = re.compile(rf"{_NUMBER}\s*(?P<unit>ns|us|µs|μs|ms|s|min)")
_TIME_SCALE = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "μs": Fraction(1, 10**6),
    "ms": Fraction(1, 10**3),
    "s": Fraction(1),
    "min": Fraction(60),
}
_SIZE = re.compile(rf"{_NUMBER}\s*(?P<unit>[kmgtKMGT]|[KMGT]iB|[kKMGT]?B)?")


def parse_bandwidth(text: object) -> float:
    """Bytes/s from ``"400Gb/s"``, ``"50GB/s"``, ``"200GiB/s"`` and the like.

    Raises:
        InputError: no unit, an unknown unit, or a value outside 1 B/s .. 1e18 B/s.
    """
    match = _BANDWIDTH.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        bare = isinstance(text, (int, float)) or (isinstance(text, str) and re.fullmatch(_NUMBER, text.strip()))
        problem = f"bandwidth {_shown(text)} has no unit" if bare else f"cannot read bandwidth {_shown(text)}"
        raise InputError(problem, hint='write it with its unit, such as "50GB/s" (bytes) or "400Gb/s" (bits)')
    value = Fraction(match["number"]) * _SCALE[match["scale"]]
    if match["unit"].startswith("b") and not match["unit"].startswith("byte"):
        value /= 8
    if not MIN_BANDWIDTH <= value <= MAX_BANDWIDTH:
        raise InputError(f"bandwidth {_shown(text)} is out of range", hint="a link carries between 1 B/s and 1e18 B/s")
    return float(value)


def parse_time(text: object) -> float:
    """Seconds from ``"2us"``, ``"1.3 us"``, ``"350ns"``; zero may be written without a unit.

    Raises:
        InputError: no unit, an unknown unit, or more than a day.
    """
    if isinstance(text, (int, float)) and not isinstance(text, bool) and text == 0:
        return 0.0
    match = _TIME.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise InputError(f"cannot read time {_shown(text)}", hint='write it with its unit, such as "2us"')
    value = Fraction(match["number"]) * _TIME_SCALE[match["unit"]]
    if value > MAX_TIME:
        raise InputError(f"time {_shown(text)} is out of range", hint="at most one day is accepted")
    return float(value)


def parse_size(text: object) -> int:
    """Bytes of a message: suffixes K, M, G, T are binary, as nccl-tests reads them; ``KiB``, ``MB`` mean what they say.

    Raises:
        InputError: an unknown suffix, a fraction of a byte that matters, zero, or more than 2**63 - 1.
    """
    if isinstance(text, int) and not isinstance(text, bool):
        text = str(text)
    match = _SIZE.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise InputError(f"cannot read size {_shown(text)}", hint='write bytes, such as "64M", "1GiB" or "500MB"')
    unit = match["unit"] or ""
    named = _SCALE.get(unit.removesuffix("B"), 1)
    scale = named if unit.endswith("B") or not unit else _BINARY[f"{unit.upper()}i"]
    value = int(Fraction(match["number"]) * scale)
    if not 1 <= value <= MAX_SIZE:
        raise InputError(f"size {_shown(text)} is out of range", hint="a message has 1 to 2**63 - 1 bytes")
    return value


def parse_fraction(text: object) -> float:
    """A gap or share from ``"1%"`` or ``"0.01"``, at least 0 and below 1.

    Raises:
        InputError: not a number, or outside [0, 1).
    """
    cleaned = str(text).strip()
    match = re.fullmatch(rf"{_NUMBER}\s*(?P<percent>%?)", cleaned)
    value = Fraction(match["number"]) / (100 if match["percent"] else 1) if match else None
    if value is None or not 0 <= value < 1:
        raise InputError(f"cannot use {_shown(text)} as a fraction", hint='write "1%" or "0.01"; it is in [0, 1)')
    return float(value)


def format_bandwidth(bytes_per_second: float) -> str:
    """Text such as ``"48.25 GB/s"`` (decimal, six significant digits)."""
    for scale, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        # 1e12 is written as 1000 GB/s up to 10 TB/s, because GB/s is what people compare
        if bytes_per_second * (1 + 5e-7) >= (10 * scale if prefix == "T" else scale):  # 999.9999996 MB/s is 1 GB/s
            return f"{bytes_per_second / scale:.6g} {prefix}B/s"
    return f"{bytes_per_second:.6g} B/s"


def format_time(seconds: float) -> str:
    """Text such as ``"12.3 us"`` (three significant digits)."""
    if seconds == 0 or not math.isfinite(seconds):
        return f"{seconds:g} s"
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= scale:
            return f"{seconds / scale:.4g} {unit}"
    return f"{seconds / 1e-9:.4g} ns"


def format_size(size: int) -> str:
    """Text such as ``"1 GiB"`` (binary, exact where it is a whole number of the unit)."""
    for scale, unit in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= scale:
            return f"{size / scale:.4g} {unit}"
    return f"{size} B"


def format_fraction(fraction: float) -> str:
    """A gap as text: percent while that reads well, else scientific."""
    return f"{100 * fraction:.3g} %" if fraction >= 1e-4 or fraction == 0 else f"{fraction:.1e}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

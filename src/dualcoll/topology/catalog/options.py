"""Catalogue entries and the options that their specs take."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from dualcoll.errors import InputError
from dualcoll.topology.model import Topology
from dualcoll.units import parse_bandwidth, parse_time

__all__ = [
    "Entry",
    "Option",
    "bandwidth",
    "choice",
    "flag",
    "latency",
    "number",
    "ratio",
    "shape",
]


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a spec: its name, what it means, its default as text (empty: decided by the entry), and its reader."""

    name: str
    summary: str
    default: str
    read: Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """A name of the catalogue.

    Attributes:
        name, summary: for lists.
        options: what it takes.
        build: the topology from its title and its options' values; an option without value or default is absent.
        size: the option that may be given without its name, first in the spec; it is required. Empty: there is none.
    """

    name: str
    summary: str
    options: tuple[Option, ...]
    build: Callable[[str, dict[str, Any]], Topology]
    size: str = ""

    def split(self, text: str) -> dict[str, object]:
        """Options as text from what follows the name's colon.

        Raises:
            InputError: an item that is not ``option=value``, or one given twice.
        """
        given: dict[str, object] = {}
        for i, item in enumerate(text.split(",") if text.strip() else ()):
            key, equals, value = (part.strip() for part in item.partition("="))
            if not equals and i == 0 and self.size:
                key, value = self.size, key
            elif not equals or not key:
                raise InputError(f"cannot read {item[:60]!r}", hint="write option=value, separated by commas")
            if key in given:
                raise InputError(f"option {key[:60]} is given twice")
            given[key] = value
        return given

    def parse(self, given: Mapping[str, object]) -> dict[str, Any]:
        """Values of the options, defaults included.

        Raises:
            InputError: an unknown option, a missing size, or a value that cannot be used.
        """
        known = {option.name: option for option in self.options}
        for key in given:
            if key not in known:
                close = get_close_matches(key[:60], known, n=1)
                hint = f"did you mean {close[0]}?" if close else f"{self.name} takes {', '.join(known)}"
                raise InputError(f"unknown option {key[:60]!r}", hint=hint)
        if self.size and self.size not in given:
            raise InputError("its size is missing", hint=f"write {self.name}:{self.size} ({known[self.size].summary})")
        values = {}
        for option in self.options:
            text = str(given.get(option.name, option.default)).strip()
            if text or option.name in given:
                try:
                    values[option.name] = option.read(text)
                except InputError as error:
                    raise error.within(option.name) from None
        return values


def number(name: str, summary: str, default: str = "", *, least: int = 1, most: int = 1_000_000) -> Option:
    """A whole number from least to most."""

    def read(text: str) -> int:
        if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
            raise InputError(f"{text[:60]!r} is not a whole number", hint=f"use {least} to {most}")
        if not least <= int(text) <= most:
            raise InputError(f"{text} is out of range", hint=f"use {least} to {most}")
        return int(text)

    return Option(name, summary, default, read)


def ratio(name: str, summary: str, default: str = "") -> Option:
    """A decimal number."""

    def read(text: str) -> float:
        if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text):
            raise InputError(f"{text[:60]!r} is not a number", hint='use a number such as "2" or "1.5"')
        return float(text)

    return Option(name, summary, default, read)


def shape(name: str, example: str, *, least_sides: int = 1, most_sides: int = 8) -> Option:
    """Sides such as ``8x8``."""
    summary = f"sides, such as {example}"

    def read(text: str) -> tuple[int, ...]:
        sides = text.lower().split("x")
        if not all(re.fullmatch(r"[0-9]{1,9}", side) and int(side) > 0 for side in sides):
            raise InputError(f"{text[:60]!r} is not a shape", hint=f"write {summary}, each at least 1")
        if not least_sides <= len(sides) <= most_sides:
            raise InputError(f"{text[:60]!r} has {len(sides)} sides", hint=f"write {summary}")
        return tuple(int(side) for side in sides)

    return Option(name, summary, "", read)


def choice(name: str, summary: str, default: str, values: tuple[str, ...]) -> Option:
    """One of a few words."""

    def read(text: str) -> str:
        if text not in values:
            close = get_close_matches(text[:60], values, n=1)
            hint = f"did you mean {close[0]}?" if close else f"use one of {', '.join(values)}"
            raise InputError(f"{text[:60]!r} is not known", hint=hint)
        return text

    return Option(name, summary, default, read)


def flag(name: str, summary: str) -> Option:
    """True or false, false by default."""
    words = {"true": True, "false": False}

    def read(text: str) -> bool:
        if text.lower() not in words:
            raise InputError(f"{text[:60]!r} is neither true nor false")
        return words[text.lower()]

    return Option(name, summary, "false", read)


def bandwidth(name: str, summary: str, default: str = "") -> Option:
    """Bytes/s, written with a unit."""
    return Option(name, summary, default, parse_bandwidth)


def latency(summary: str, default: str) -> Option:
    """Seconds a link, written with a unit."""

    def read(text: str) -> float:
        return 0.0 if text == "0" else parse_time(text)

    return Option("latency", summary, default, read)

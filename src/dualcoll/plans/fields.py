"""Parsed JSON by type: each reader returns what it is asked for, or says where it is not and what stands there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from dualcoll.errors import InputError

__all__ = ["array", "choice", "flag", "integer", "integers", "names", "number", "shown", "text", "the_object", "within"]

P = ParamSpec("P")
T = TypeVar("T")


def within(where: str, make: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call, with ``where`` put before the place of any error."""
    try:
        return make(*args, **kwargs)
    except InputError as error:
        raise error.within(where) from None


def the_object(data: object, where: str, keys: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """An object with all of the keys, perhaps the optional ones, and no others."""
    known = (*keys, *optional)
    if not isinstance(data, dict):
        raise InputError(f"{shown(data)} is not an object", where=where, hint=f"it has the keys {', '.join(known)}")
    for key in data:
        if key not in known:
            raise InputError(f"key {shown(key)} is not known", where=where, hint=f"use {', '.join(known)}")
    for key in keys:
        if key not in data:
            raise InputError(f"key {key!r} is missing", where=where)
    return data


def array(data: object, where: str) -> list[object]:
    """A list."""
    if not isinstance(data, list):
        raise InputError(f"{shown(data)} is not a list", where=where)
    return data


def text(data: object, where: str) -> str:
    """A text."""
    if not isinstance(data, str):
        raise InputError(f"{shown(data)} is not a text", where=where)
    return data


def names(data: object, where: str) -> tuple[str, ...]:
    """A list of texts."""
    return tuple(text(name, f"{where}[{i}]") for i, name in enumerate(array(data, where)))


def choice(data: object, where: str, choices: list[str]) -> str:
    """One of the texts."""
    if data not in choices:
        raise InputError(f"{shown(data)} is not known", where=where, hint=f"use one of {', '.join(choices)}")
    return str(data)


def flag(data: object, where: str) -> bool:
    """True or false."""
    if not isinstance(data, bool):
        raise InputError(f"{shown(data)} is not true or false", where=where)
    return data


def integer(data: object, where: str) -> int:
    """A whole number, written without a point."""
    if type(data) is not int:
        raise InputError(f"{shown(data)} is not a whole number", where=where)
    return data


def integers(data: object, where: str) -> tuple[int, ...]:
    """A list of whole numbers."""
    return tuple(integer(number, f"{where}[{i}]") for i, number in enumerate(array(data, where)))


def number(data: object, where: str) -> float:
    """The double nearest to a number."""
    if type(data) not in (int, float):
        raise InputError(f"{shown(data)} is not a number", where=where)
    try:
        return float(data)  # type: ignore[arg-type]
    except OverflowError:
        raise InputError(f"{shown(data)} is too large", where=where) from None


def shown(data: object) -> str:
    """A value for a message, cut short."""
    value = ascii(data)
    return value if len(value) <= 60 else f"{value[:57]}..."

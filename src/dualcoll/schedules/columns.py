"""Columns of numbers as JSON: one number for all, a list, or packed (docs/schedule-file.md)."""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualcoll.errors import InputError

__all__ = ["packed", "short", "unpacked"]

READABLE = 256  # numbers up to which a column is written as a list


def packed(column: NDArray[Any]) -> int | float | list[Any] | dict[str, str]:
    """The shortest of the forms for integers or floats of any width."""
    kind = "<f8" if column.dtype.kind == "f" else "<i8"
    wide = column.astype(kind)
    if wide.size and np.all(wide == wide[0]):
        number: int | float = wide[0].item()
        return number
    if wide.size <= READABLE:
        numbers: list[Any] = wide.tolist()
        return numbers
    if kind == "<i8":
        wide = np.diff(wide, prepend=np.zeros(1, kind))  # wraps where it must; so does the sum
    return {"zlib": base64.b64encode(zlib.compress(wide.tobytes())).decode()}


def unpacked(data: object, count: int, where: str, *, floats: bool = False) -> NDArray[Any]:
    """The column of that many numbers, int64 or float64.

    Raises:
        InputError: none of the forms, another number of numbers, or something else than numbers.
    """
    kinds: tuple[type, ...] = (int, float) if floats else (int,)
    try:
        if type(data) in kinds:
            return np.full(count, data, "<f8" if floats else "<i8")
        if isinstance(data, list) and {type(number) for number in data} <= set(kinds):
            _check_count(len(data), count, where)
            return np.array(data, "<f8" if floats else "<i8")
    except OverflowError:
        raise InputError("a number has more than 64 bits", where=where) from None
    if isinstance(data, dict) and set(data) == {"zlib"} and isinstance(data["zlib"], str):
        column = np.frombuffer(_inflated(data["zlib"], 8 * count, where), "<f8" if floats else "<i8")
        return column if floats else np.cumsum(column)
    what = "numbers" if floats else "whole numbers"
    hint = 'a column is one number for all, a list of numbers, or {"zlib": "..."}'
    raise InputError(f"it is not a column of {what}", where=where, hint=hint)


def short(column: NDArray[np.int64], where: str) -> NDArray[np.int32]:
    """The same as int32.

    Raises:
        InputError: a number does not fit.
    """
    narrow = column.astype(np.int32)
    if not np.array_equal(narrow, column):
        raise InputError("a number does not fit int32", where=where)
    return narrow


def _inflated(text: str, size: int, where: str) -> bytes:
    reader = zlib.decompressobj()
    try:
        found = reader.decompress(base64.b64decode(text, validate=True), size + 8)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise InputError(f"the packed column is damaged: {error}", where=where) from None
    if len(found) > size:
        _check_count(f"more than {size // 8}", size // 8, where)
    if not reader.eof:
        raise InputError("the packed column is cut off", where=where)
    if len(found) % 8:
        raise InputError("the packed column ends within a number", where=where)
    _check_count(len(found) // 8, size // 8, where)
    return found


def _check_count(found: int | str, wanted: int, where: str) -> None:
    if found != wanted:
        raise InputError(f"it has {found} numbers where {wanted} belong", where=where)

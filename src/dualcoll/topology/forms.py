"""Strict forms for files: what every value may look like, and errors that say where and what instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic_core import PydanticCustomError

from dualcoll.errors import InputError
from dualcoll.topology.source_text import Loc
from dualcoll.units import parse_bandwidth, parse_time

__all__ = ["Bandwidth", "Flag", "Form", "Latency", "Name", "Place", "Ratio", "Text", "Whole", "filled", "one_of"]

Place = Callable[[Loc], str]  # where a key stands: its file and line as far as known, and its path
F = TypeVar("F", bound="Form")


class Form(BaseModel):
    """A mapping of a file; keys that it does not have are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def filled(form: type[F], data: object, place: Place) -> F:
    """The form filled with the data.

    Raises:
        InputError: the first thing that does not fit, with its place.
    """
    if not isinstance(data, dict):
        raise InputError("it is not a mapping of keys to values", where=place(()))
    try:
        return form.model_validate(data)
    except ValidationError as error:
        raise _explained(form, error, place) from None


def _explained(form: type[Form], error: ValidationError, place: Place) -> InputError:
    # a misspelt key is both unknown and missing: the spelling is what helps
    first = min(error.errors(include_url=False), key=lambda e: e["type"] != "extra_forbidden")
    loc, value = first["loc"], first["input"]
    if first["type"] == "missing":
        return InputError(f"{loc[-1]} is missing", where=place(loc[:-1]))
    if first["type"] == "extra_forbidden":
        keys = _keys(form, loc)
        close = get_close_matches(str(loc[-1])[:60], keys, n=1)
        hint = f"did you mean {close[0]}?" if close else f"the keys are {', '.join(keys)}"
        return InputError(f"unknown key {str(loc[-1])[:60]!r}", where=place(loc), hint=hint)
    if first["type"] == "input":
        return InputError(first["ctx"]["problem"], where=place(loc), hint=first["ctx"]["hint"])
    kind = {"model_type": "a mapping of keys to values", "tuple_type": "a list"}.get(first["type"], "usable here")
    return InputError(f"{_shown(value)} is not {kind}", where=place(loc))


def _keys(form: type[Form], loc: Loc) -> list[str]:
    """Keys of the mapping in which ``loc`` stands."""
    here: Any = form
    for key in loc[:-1]:
        if isinstance(key, str):
            annotation: Any = next(f.annotation for n, f in here.model_fields.items() if (f.alias or n) == key)
            while not (isinstance(annotation, type) and issubclass(annotation, Form)):
                annotation = annotation.__args__[0]
            here = annotation
    return [field.alias or name for name, field in here.model_fields.items()]


def _reads(read: Callable[[Any], Any]) -> BeforeValidator:
    def validate(value: object) -> object:
        try:
            return read(value)
        except InputError as error:
            raise PydanticCustomError("input", "unusable", {"problem": error.problem, "hint": error.hint}) from None

    return BeforeValidator(validate)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(f"{_shown(value)} is not text", hint="put it in quotes" if value is not None else "")
    return str(value)


def _name(value: object) -> str:
    text = _text(value)
    if not text or not text.isprintable() or len(text) > 255:
        raise InputError(f"{_shown(text)} is not usable as a name", hint="use 1 to 255 printable characters")
    return text


def _flag(value: object) -> bool:
    words = {"true": True, "false": False}
    if str(value).lower() not in words:
        raise InputError(f"{_shown(value)} is neither true nor false")
    return words[str(value).lower()]


def _whole(value: object) -> int:
    if isinstance(value, bool) or not re.fullmatch(r"-?[0-9]{1,9}", str(value)):
        raise InputError(f"{_shown(value)} is not a whole number of at most nine digits")
    return int(str(value))


def _ratio(value: object) -> float:
    text = str(value)
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,400}(\.[0-9]{0,400})?([eE][+-]?[0-9]{1,4})?", text):
        raise InputError(f"{_shown(value)} is not a positive number", hint='use a number such as "2" or "1.5"')
    return float(text)


def _time(value: object) -> float:
    return 0.0 if value in ("0", "0.0") else parse_time(value)


@lru_cache(maxsize=4096)
def _bandwidth_text(text: str) -> float:
    return parse_bandwidth(text)


def _bandwidth(value: object) -> float:
    return _bandwidth_text(value) if isinstance(value, str) else parse_bandwidth(value)


def one_of(kind: type[StrEnum]) -> BeforeValidator:
    """A word of the enumeration."""
    words = [str(word) for word in kind]

    def read(value: object) -> StrEnum:
        if value not in words:
            close = get_close_matches(str(value)[:60], words, n=1)
            hint = f"did you mean {close[0]}?" if close else f"use one of {', '.join(words)}"
            raise InputError(f"{_shown(value)} is not known", hint=hint)
        return kind(value)

    return _reads(read)


Bandwidth = Annotated[float, _reads(_bandwidth)]
Latency = Annotated[float, _reads(_time)]
Name = Annotated[str, _reads(_name)]
Text = Annotated[str, _reads(_text)]
Flag = Annotated[bool, _reads(_flag)]
Whole = Annotated[int, _reads(_whole)]
Ratio = Annotated[float, _reads(_ratio)]

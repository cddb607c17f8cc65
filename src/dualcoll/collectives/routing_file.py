"""Expert routing from YAML or JSON (docs/collectives.md, "Expert routing")."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated

import numpy as np
from pydantic import FailFast

from dualcoll.collectives.expert_routing import ExpertRouting, Overflow
from dualcoll.errors import InputError
from dualcoll.topology.forms import Form, Name, Place, Ratio, Text, Whole, filled, one_of

__all__ = ["routing_from_data"]

_BYTES = {
    "float64": 8,
    "fp64": 8,
    "float32": 4,
    "fp32": 4,
    "tf32": 4,
    "int32": 4,
    "float16": 2,
    "fp16": 2,
    "half": 2,
    "bfloat16": 2,
    "bf16": 2,
    "fp8": 1,
    "float8": 1,
    "int8": 1,
    "uint8": 1,
}


class RoutingForm(Form):
    """A whole file."""

    tokens: Annotated[tuple[Annotated[tuple[Whole, ...], FailFast()], ...], FailFast()]
    hidden: Whole
    dtype: Text
    ranks: Annotated[tuple[Name, ...], FailFast()] = ()
    experts: Annotated[tuple[Name, ...], FailFast()] = ()
    block: Whole = 1
    capacity_factor: Ratio | None = None
    overflow: Annotated[Overflow, one_of(Overflow)] | None = None


def routing_from_data(data: object, place: Place) -> ExpertRouting:
    """The routing that plain data describes.

    Raises:
        InputError: whatever is wrong, with its place.
    """
    form = filled(RoutingForm, data, place)
    _check_tokens(form, place)
    for key in ("hidden", "block"):
        if getattr(form, key) < 1:
            raise InputError(f"{getattr(form, key)} is not 1 or more", where=place((key,)))
    factor = form.capacity_factor
    if factor is not None and not (math.isfinite(factor) and factor > 0):
        hint = "1.25 means a quarter more than the mean"
        raise InputError(f"{factor:g} is not a positive number", where=place(("capacity_factor",)), hint=hint)
    if factor is None and form.overflow is not None:
        problem = "without a capacity_factor nothing overflows"
        raise InputError(problem, where=place(("overflow",)), hint="give one, or leave overflow out")
    if form.ranks and len(form.ranks) != len(form.tokens):
        problem = f"{len(form.ranks)} names for {len(form.tokens)} rows of tokens"
        raise InputError(problem, where=place(("ranks",)), hint="name the rank of each row")
    return ExpertRouting(
        tokens=np.array(form.tokens, np.int64),
        hosts=np.array(_hosts(form, place), np.int64),
        token_bytes=form.hidden * _element_bytes(form.dtype, place),
        block=form.block,
        capacity_factor=None if factor is None else Fraction(repr(factor)),
        overflow=form.overflow or Overflow.DROP,
        names=form.ranks,
    )


def _check_tokens(form: RoutingForm, place: Place) -> None:
    if not form.tokens or not form.tokens[0]:
        hint = "give one row for each rank and one column for each expert"
        raise InputError("there are no tokens", where=place(("tokens",)), hint=hint)
    width = len(form.tokens[0])
    for i, row in enumerate(form.tokens):
        if len(row) != width:
            problem = f"a row of {len(row)} where the first has {width}"
            raise InputError(problem, where=place(("tokens", i)), hint="give one column for each expert")
        for j, count in enumerate(row):
            if count < 0:
                raise InputError(f"{count} tokens are negative", where=place(("tokens", i, j)))


def _hosts(form: RoutingForm, place: Place) -> list[int]:
    """The row of the rank that holds each expert."""
    rows, experts = len(form.tokens), len(form.tokens[0])
    if not form.experts:
        if experts % rows:
            hint = "list under experts the rank that holds each"
            problem = f"{experts} experts do not divide over {rows} ranks"
            raise InputError(problem, where=place(("tokens",)), hint=hint)
        return [expert * rows // experts for expert in range(experts)]
    if len(form.experts) != experts:
        problem = f"{len(form.experts)} entries for {experts} columns of tokens"
        raise InputError(problem, where=place(("experts",)), hint="give the rank that holds each expert")
    known = {name: i for i, name in enumerate(form.ranks or map(str, range(rows)))}
    for i, name in enumerate(form.experts):
        if name not in known:
            hint = "use a name listed under ranks" if form.ranks else f"rows of tokens are 0 to {rows - 1}"
            raise InputError(f"{name[:60]!r} is not a rank", where=place(("experts", i)), hint=hint)
    return [known[name] for name in form.experts]


def _element_bytes(dtype: str, place: Place) -> int:
    """Bytes of an element of that type; a number of bytes is itself."""
    name = dtype.strip().lower()
    if name in ("1", "2", "4", "8"):
        return int(name)
    if name not in _BYTES:
        hint = f"use one of {', '.join(_BYTES)}, or the bytes of one element: 1, 2, 4 or 8"
        raise InputError(f"{dtype[:60]!r} is not known", where=place(("dtype",)), hint=hint)
    return _BYTES[name]

"""Reads MSCCL XML: its form is checked here, its meaning by :mod:`~dualcoll.lowering.msccl.validate`.

Loaders look at the attributes listed here and skip all others of ``<gpu>``, ``<tb>`` and ``<step>``, and ``<copy>`` elements.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from dualcoll.errors import InputError
from dualcoll.files import read_bytes
from dualcoll.lowering.msccl.program import Buffer, Gpu, Program, Step, StepType, ThreadBlock
from dualcoll.topology.importers.xml_tree import Element, parse_xml

__all__ = ["is_msccl", "parse_msccl", "read_msccl"]

MAX_ELEMENTS = 600_000
MAX_CHUNKS = 2**15  # of a buffer: executors keep offsets in 16 bits
MAX_NUMBER = 2**31 - 1
PROTOCOLS = ("Simple", "LL", "LL128")

_ALGO = (
    "name",
    "proto",
    "nchannels",
    "nchunksperloop",
    "ngpus",
    "coll",
    "inplace",
    "outofplace",
    "minBytes",
    "maxBytes",
)
_PROLOGUE = re.compile(rb"(?:\xef\xbb\xbf)?(?:(?>\s+)|(?><\?.*?\?>)|(?><!--.*?-->))*+<algo[\s>/]", re.DOTALL)
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")

E = TypeVar("E", bound=StrEnum)
T = TypeVar("T")


def is_msccl(data: bytes) -> bool:
    """Whether the root element is ``<algo>``."""
    return _PROLOGUE.match(data) is not None


def read_msccl(path: str | Path) -> Program:
    """The program in a file.

    Raises:
        InputError: as :func:`parse_msccl`, or the file cannot be read.
    """
    return parse_msccl(read_bytes(path), str(path))


def parse_msccl(data: bytes, where: str) -> Program:
    """The program.

    Args:
        data: the file's content. where: its name, for messages.

    Raises:
        InputError: broken XML, an element or type of step that is not known, an attribute missing or no number in range,
            or ids that do not count from 0; with the line.
    """
    root = parse_xml(data, where, MAX_ELEMENTS)
    return _Reader(where).program(root)


class _Reader:
    def __init__(self, where: str) -> None:
        self.where = where

    def program(self, root: Element) -> Program:
        if root.tag != "algo":
            raise self._error(root, f"the root element is <{root.tag[:60]}>, not <algo>")
        ngpus = self._whole(root, "ngpus", 1)
        gpus = self._by_id(root, "gpu", self._gpu, ignored=())
        if len(gpus) != ngpus:
            raise self._error(root, f"ngpus is {ngpus}, and there are {len(gpus)} <gpu> elements")
        proto = self._text(root, "proto")
        if proto not in PROTOCOLS:
            hint = f"use one of {', '.join(PROTOCOLS)}"
            raise self._error(root, f"proto {proto[:60]!r} is not known", hint)
        given = root.attributes
        return Program(
            name=self._text(root, "name"),
            coll=self._text(root, "coll"),
            proto=proto,
            nchannels=self._whole(root, "nchannels", 1),
            nchunksperloop=self._whole(root, "nchunksperloop", 1, MAX_CHUNKS),
            gpus=gpus,
            inplace=self._flag(root, "inplace"),
            outofplace=self._flag(root, "outofplace") if "outofplace" in given else None,
            min_bytes=self._whole(root, "minBytes", 0, 2**63 - 1) if "minBytes" in given else None,
            max_bytes=self._whole(root, "maxBytes", 0, 2**63 - 1) if "maxBytes" in given else None,
            other=tuple((name, value) for name, value in given.items() if name not in _ALGO),
            line=root.line,
        )

    def _gpu(self, element: Element) -> Gpu:
        i, o, s = (self._whole(element, f"{buffer}_chunks", 0, MAX_CHUNKS) for buffer in Buffer)
        return Gpu(i, o, s, self._by_id(element, "tb", self._block, ignored=("copy",)), element.line)

    def _block(self, element: Element) -> ThreadBlock:
        steps: list[Step] = []
        for child in element.children:
            if child.tag != "step":
                raise self._error(child, f"<{child.tag[:60]}> is not known in <tb>", "only <step> stands there")
            number = self._whole(child, "s", 0)
            if number != len(steps):
                raise self._error(child, f"step {number} stands where step {len(steps)} should be")
            steps.append(self._step(child))
        send, recv = self._whole(element, "send", -1), self._whole(element, "recv", -1)
        return ThreadBlock(send, recv, self._whole(element, "chan", 0), tuple(steps), element.line)

    def _step(self, element: Element) -> Step:
        return Step(
            type=self._one_of(element, "type", StepType),
            srcbuf=self._one_of(element, "srcbuf", Buffer),
            srcoff=self._whole(element, "srcoff", -1),
            dstbuf=self._one_of(element, "dstbuf", Buffer),
            dstoff=self._whole(element, "dstoff", -1),
            cnt=self._whole(element, "cnt", 0),
            depid=self._whole(element, "depid", -1),
            deps=self._whole(element, "deps", -1),
            hasdep=self._flag(element, "hasdep"),
            line=element.line,
        )

    def _by_id(
        self, parent: Element, tag: str, read: Callable[[Element], T], ignored: tuple[str, ...]
    ) -> tuple[T, ...]:
        """The children of this tag in the order of their ids, which must count from 0."""
        found: dict[int, Element] = {}
        for child in parent.children:
            if child.tag in ignored:
                continue
            if child.tag != tag:
                raise self._error(child, f"<{child.tag[:60]}> is not known in <{parent.tag}>")
            number = self._whole(child, "id", 0)
            if number in found:
                raise self._error(child, f"<{tag}> {number} is there already, in line {found[number].line}")
            found[number] = child
        missing = next((number for number in range(len(found)) if number not in found), None)
        if missing is not None:
            highest = max(found)
            raise self._error(found[highest], f"<{tag}> {highest} is there and {missing} is not; ids count from 0")
        return tuple(read(found[number]) for number in range(len(found)))

    def _text(self, element: Element, name: str) -> str:
        if name not in element.attributes:
            raise self._error(element, f"<{element.tag}> has no {name}")
        return element.attributes[name]

    def _whole(self, element: Element, name: str, low: int, high: int = MAX_NUMBER) -> int:
        text = self._text(element, name)
        value = int(text) if _WHOLE.fullmatch(text) else None
        if value is None or not low <= value <= high:
            raise self._error(element, f"{name} {text[:60]!r} is not a whole number of {low} .. {high}")
        return value

    def _flag(self, element: Element, name: str) -> bool:
        return self._whole(element, name, 0, 1) == 1

    def _one_of(self, element: Element, name: str, known: type[E]) -> E:
        text = self._text(element, name)
        try:
            return known(text)
        except ValueError:
            hint = f"use one of {', '.join(known)}"
            raise self._error(element, f"{name} {text[:60]!r} is not known", hint) from None

    def _error(self, element: Element, problem: str, hint: str = "") -> InputError:
        return InputError(problem, where=f"{self.where}:{element.line}", hint=hint)

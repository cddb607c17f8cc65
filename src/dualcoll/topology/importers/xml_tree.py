"""Untrusted XML as a plain tree whose elements know their line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser, ParseError

from dualcoll.errors import InputError

__all__ = ["Element", "parse_xml"]

MAX_DEPTH = 64
MAX_ELEMENTS = 100_000


@dataclass(slots=True)
class Element:
    """An element: its tag, attributes, line (from 1) and child elements."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)

    def get(self, name: str) -> str:
        """The attribute, empty if it is missing."""
        return self.attributes.get(name, "")

    def all(self, tag: str) -> list[Element]:
        """The children of this tag."""
        return [child for child in self.children if child.tag == tag]

    def walk(self) -> Iterator[Element]:
        """The element and all below it, in file order."""
        yield self
        for child in self.children:
            yield from child.walk()


class _TooBig(Exception):
    """The document exceeds a limit; the message says which."""


class _Collector:
    """Parser target that builds the tree within the limits."""

    def __init__(self, elements: int) -> None:
        self.elements = elements
        self.parser: DefusedXMLParser | None = None
        self.root: Element | None = None
        self.stack: list[Element] = []
        self.count = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.count += 1
        if len(self.stack) >= MAX_DEPTH:
            raise _TooBig(f"elements are nested deeper than {MAX_DEPTH}")
        if self.count > self.elements:
            raise _TooBig(f"it has more than {self.elements} elements")
        element = Element(tag, dict(attributes), self.line)
        if self.stack:
            self.stack[-1].children.append(element)
        else:
            self.root = element
        self.stack.append(element)

    def end(self, _tag: str) -> None:
        self.stack.pop()

    def close(self) -> Element | None:
        return self.root

    @property
    def line(self) -> int:
        parser = self.parser
        return int(parser.parser.CurrentLineNumber) if parser is not None else 0


def parse_xml(data: bytes, where: str, elements: int = MAX_ELEMENTS) -> Element:
    """The root element. Document types and entities are refused, and more than so many elements.

    Raises:
        InputError: not well-formed, a document type, or a limit exceeded; with the line.
    """
    target = _Collector(elements)
    parser = target.parser = DefusedXMLParser(target=target, forbid_dtd=True)
    try:
        parser.feed(data)
        root = parser.close()
    except ParseError as error:
        reason = str(error).partition(": line ")[0]
        raise InputError(f"the XML is broken: {reason}", where=f"{where}:{error.position[0]}") from None
    except DefusedXmlException:
        raise InputError(
            "the XML has a document type or entities",
            where=f"{where}:{target.line}",
            hint="neither is needed: remove the <!DOCTYPE ...> part",
        ) from None
    except _TooBig as error:
        raise InputError(f"the XML is too big: {error}", where=f"{where}:{target.line}") from None
    except (LookupError, ValueError) as error:
        raise InputError(f"the XML's encoding cannot be read: {error}", where=where) from None
    assert isinstance(root, Element)
    return root

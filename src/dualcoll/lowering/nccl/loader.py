"""NCCL's own XML parser (``src/graph/xml.cc``, 2.30), rule by rule: what it refuses, no file of ours may hold.

It shares nothing with the readers, which use a real XML parser: what both accept, both understand alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dualcoll.errors import InputError

__all__ = ["LoadedNode", "element_text", "load_as_nccl"]

MAX_TEXT = 254  # characters of a name or value
MAX_ATTRIBUTES = 16
MAX_CHILDREN = 640
MAX_DEPTH = 64  # ours; NCCL has none
UNSAFE = frozenset("\"'<>&")  # NCCL decodes no entities


@dataclass(slots=True)
class LoadedNode:
    """An element as NCCL holds it."""

    name: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[LoadedNode] = field(default_factory=list)

    def get(self, name: str) -> str:
        """The attribute, empty if it is missing."""
        return self.attributes.get(name, "")


def element_text(name: str, attributes: dict[str, object], children: list[str] | None = None, indent: int = 0) -> str:
    """One element as NCCL writes it: attributes on one line, a single space before each.

    Args:
        children: elements that were made with an indent two deeper.

    Raises:
        InputError: a value that NCCL's parser would misread, or that is too long.
    """
    for key, value in attributes.items():
        text = str(value)
        if UNSAFE & set(text) or not text.isprintable() or len(text) > MAX_TEXT:
            raise InputError(
                f"{key} {text[:60]!r} cannot be written: NCCL knows no entities and takes {MAX_TEXT} characters",
                where=f"<{name}>",
                hint="use letters, digits and punctuation other than quotes, <, > and &",
            )
    pad = " " * indent
    head = pad + "<" + name + "".join(f' {key}="{value}"' for key, value in attributes.items())
    if not children:
        return f"{head}/>\n"
    return f"{head}>\n{''.join(children)}{pad}</{name}>\n"


def load_as_nccl(data: bytes, where: str, known: dict[str, tuple[str, ...]], most_nodes: int) -> LoadedNode:
    """The root element as NCCL's loader would hold it.

    Args:
        known: the elements that the loader takes below each; "" for the root's. Others are skipped, as NCCL does.
        most_nodes: elements that the loader has room for.

    Raises:
        InputError: what the loader fails on, with the line.
    """
    return _Loader(data.decode("latin-1"), where, known, most_nodes).root()


class _Loader:
    def __init__(self, text: str, where: str, known: dict[str, tuple[str, ...]], most: int) -> None:
        self.text, self.where, self.known, self.most = text, where, known, most
        self.at = 0
        self.count = 0

    def fail(self, problem: str) -> InputError:
        line = self.text.count("\n", 0, self.at) + 1
        return InputError(f"NCCL would refuse it: {problem}", where=f"{self.where}:{line}")

    def root(self) -> LoadedNode:
        top = LoadedNode("")
        self.load(top)
        if not top.children:
            raise self.fail(f"no <{self.known[''][0]}> in it")
        return top.children[0]

    def char(self) -> str:
        if self.at >= len(self.text):
            raise self.fail("it ends too soon")
        self.at += 1
        return self.text[self.at - 1]

    def token(self, *, valued: bool) -> tuple[str, str, str]:
        """A name, the value after it, and the character that ended it."""
        name = ""
        while True:
            c = self.char()
            if c == "=":
                if not valued:
                    raise self.fail(f"a value with the name {name[:60]!r}")
                return name, *self.value()
            if c in " >/\n\r":
                return name, "", c
            name += c
            if len(name) > MAX_TEXT:
                raise self.fail(f"a name of more than {MAX_TEXT} characters (attributes need one space between them)")

    def value(self) -> tuple[str, str]:
        quote = self.char()
        if quote not in "\"'":
            raise self.fail("a value without quotes")
        value = ""
        while (c := self.char()) != quote:
            value += c
            if len(value) > MAX_TEXT:
                raise self.fail(f"a value of more than {MAX_TEXT} characters")
        return value, self.char()

    def node(self) -> tuple[LoadedNode, str] | None:
        """The next element and what its tag is: open, close or single; None at the end of the file."""
        while True:
            while self.at < len(self.text) and self.text[self.at] in " \n\r":
                self.at += 1
            if self.at >= len(self.text):
                return None
            if (c := self.char()) != "<":
                raise self.fail(f"{c!r} where an element should begin")
            name, _, c = self.token(valued=False)
            if not name.startswith("!--"):
                break
            end = self.text.find("-->", self.at - len(name) - 1)
            if end < 0:
                raise self.fail("a comment without end")
            self.at = end + 3
        if not name and c == "/":
            name, _, c = self.token(valued=False)
            if c != ">":
                raise self.fail(f"{c!r} in the closing tag of {name[:60]}")
            return LoadedNode(name), "close"
        return self.attributes(name, c)

    def attributes(self, name: str, c: str) -> tuple[LoadedNode, str]:
        node, kind = LoadedNode(name), "open"
        while c == " ":
            key, value, c = self.token(valued=True)
            if key:
                node.attributes.setdefault(key, value)
            if len(node.attributes) > MAX_ATTRIBUTES:
                raise self.fail(f"more than {MAX_ATTRIBUTES} attributes on <{name[:60]}>; it ignores the rest")
        if c == "/":
            kind = "single"
            _, _, c = self.token(valued=False)
        if c != ">":
            raise self.fail(f"{c!r} where <{name[:60]}> should end (all attributes stand on one line)")
        return node, kind

    def load(self, head: LoadedNode, *, skipping: bool = False, depth: int = 0) -> None:
        """Everything up to the end of the element."""
        if depth > MAX_DEPTH:
            raise self.fail(f"elements are nested deeper than {MAX_DEPTH}")
        while True:
            found = self.node()
            if found is None:
                if head.name:
                    raise self.fail(f"<{head.name[:60]}> is not closed")
                return
            node, kind = found
            if kind == "close" and head.name:
                if node.name != head.name:
                    raise self.fail(f"</{node.name[:60]}> closes <{head.name[:60]}>")
                return
            is_known = not skipping and node.name in self.known.get(head.name, ())
            if is_known:
                head.children.append(node)
                self.count += 1
                if len(head.children) > MAX_CHILDREN or self.count >= self.most:
                    raise self.fail(f"more than {MAX_CHILDREN} elements in one, or {self.most - 1} in all")
            if kind == "open":
                self.load(node, skipping=not is_known, depth=depth + 1)

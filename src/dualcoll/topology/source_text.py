"""YAML and JSON text as plain data that knows its lines.

YAML scalars stay text (only ``null`` and ``~`` are None), so that a node may be called ``on``, ``no`` or ``007``; whoever
reads a value says what it is. Repeated keys, aliases that swell, and loops are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import yaml

from dualcoll.errors import InputError

__all__ = ["Loc", "SourceText", "loc_text"]

Loc = Sequence[str | int]  # ("links", 3, "bandwidth")

MAX_YAML = 8 * 2**20  # bytes; YAML reads at about 1 MiB/s
MAX_EXPANDED = 4_000_000  # values, aliases counted wherever they stand
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULL = "tag:yaml.org,2002:null"  # what plain null, ~ and nothing resolve to
_PLAIN_TAGS = {_NULL} | {
    f"tag:yaml.org,2002:{name}" for name in ("str", "bool", "int", "float", "timestamp", "value", "merge", "map", "seq")
}


def loc_text(loc: Loc) -> str:
    """Text such as ``links[3].bandwidth``."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key[:60]}" for key in loc).lstrip(".")


@dataclass(slots=True)
class SourceText:
    """A parsed text.

    Attributes:
        where: the file's name for messages.
        text: the content.
        data: mappings, lists, text and None; numbers and booleans only from JSON.
    """

    where: str
    text: str
    data: object
    _root: yaml.Node | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, content: bytes, where: str) -> SourceText:
        """Read JSON if the text is an object with a quoted key, else YAML.

        Raises:
            InputError: not UTF-8, broken, repeated keys, nested too deep, or too big.
        """
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            raise InputError("it is not UTF-8 text", where=f"{where}:{line}") from None
        try:
            if re.match(r'\s*\{\s*["}]', text):
                return cls(where, text, _json_data(text, where))
            root = _compose(text, where)
            return cls(where, text, _Plain(where).data(root), root)
        except RecursionError:
            raise InputError("it is nested too deep", where=where) from None

    def place(self, loc: Loc) -> str:
        """Text such as ``fabric.yaml:12: links[3].bandwidth``, the line left out where it cannot be had cheaply."""
        if not loc:
            return self.where
        line = self._line(loc)
        return f"{self.where}{'' if line is None else f':{line}'}: {loc_text(loc)}"

    def _line(self, loc: Loc) -> int | None:
        try:
            node: yaml.Node = self._root or _compose(self.text, self.where)
        except (InputError, RecursionError):
            return None
        line = node.start_mark.line
        for key in loc:
            if isinstance(node, yaml.SequenceNode) and isinstance(key, int):
                node = node.value[key]
                line = node.start_mark.line
            elif isinstance(node, yaml.MappingNode):
                name, node = next(((name, value) for name, value in node.value if name.value == key), (node, node))
                line = name.start_mark.line
        return int(line) + 1


def _json_data(text: str, where: str) -> object:
    def pairs(items: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(items)
        if len(found) < len(items):
            keys = [key for key, _ in items]
            repeated = next(key for key in keys if keys.count(key) > 1)
            _Plain(where).data(_compose(text, where))  # the same complaint, with its line
            raise InputError(f"key {repeated[:60]!r} is given twice", where=where)
        return found

    def constant(name: str) -> NoReturn:
        raise InputError(f"{name} is not a number that JSON knows", where=where)

    try:
        return json.loads(text, object_pairs_hook=pairs, parse_constant=constant)
    except json.JSONDecodeError as error:
        raise InputError(f"the JSON is broken: {error.msg}", where=f"{where}:{error.lineno}") from None
    except ValueError:
        raise InputError("a number has too many digits", where=where) from None


def _compose(text: str, where: str) -> yaml.Node:
    if len(text) > MAX_YAML:
        raise InputError(
            f"it is larger than {MAX_YAML // 2**20} MiB",
            where=where,
            hint="write big fabrics as JSON, which reads faster",
        )
    try:
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise InputError(f"the YAML is broken: {error.problem}", where=f"{where}{line}") from None
    except yaml.YAMLError as error:
        raise InputError(f"the YAML is broken: {getattr(error, 'reason', 'it cannot be read')}", where=where) from None
    if root is None:
        raise InputError("it is empty", where=where)
    return root


class _Plain:
    """Turns YAML nodes into plain data; each node once, however many aliases name it."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.done: dict[int, tuple[object, int]] = {}
        self.open: set[int] = set()

    def data(self, root: yaml.Node) -> object:
        """The plain data."""
        value, size = self._convert(root)
        if size > MAX_EXPANDED:
            raise InputError("its aliases expand to millions of values", where=self.where, hint="write them out")
        return value

    def _convert(self, node: yaml.Node) -> tuple[object, int]:
        """The node's value, and how many values it holds with aliases written out."""
        if node.tag not in _PLAIN_TAGS:
            self._refuse(node, f"tag {node.tag[:60]} is not allowed")
        if isinstance(node, yaml.ScalarNode):
            return None if node.tag == _NULL else node.value, 1
        if id(node) in self.open:
            self._refuse(node, "an alias inside its own anchor")
        if id(node) not in self.done:
            self.open.add(id(node))
            self.done[id(node)] = self._mapping(node) if isinstance(node, yaml.MappingNode) else self._sequence(node)
            self.open.remove(id(node))
        return self.done[id(node)]

    def _mapping(self, node: yaml.MappingNode) -> tuple[object, int]:
        found: dict[str, object] = {}
        total = 1
        for key, child in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._refuse(key, "a key that is not plain text")
            if key.value in found:
                self._refuse(key, f"key {key.value[:60]!r} is given twice")
            found[key.value], size = self._convert(child)
            total += size
        return found, total

    def _sequence(self, node: yaml.Node) -> tuple[object, int]:
        pairs = [self._convert(child) for child in node.value]
        return [value for value, _ in pairs], 1 + sum(size for _, size in pairs)

    def _refuse(self, node: yaml.Node, problem: str) -> NoReturn:
        raise InputError(problem, where=f"{self.where}:{node.start_mark.line + 1}")

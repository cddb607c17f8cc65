"""Plan files, described in docs/plan-file.md: one JSON object, and beside it a file of the trees where they are many.

Numbers are written with all their digits and read as the nearest double, so a plan comes back exactly as it was.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from dualcoll.files import atomic_write, read_bytes
from dualcoll.plans.conversion import document_to_plan, plan_to_document
from dualcoll.plans.document import PlanDocument, TreesOnDemand
from dualcoll.plans.fields import within
from dualcoll.plans.json_form import document_from_json, document_to_json, trees_to_json
from dualcoll.plans.model import Plan
from dualcoll.plans.tree_file import tree_file_reference, trees_to_bytes
from dualcoll.topology.source_text import SourceText

__all__ = ["document_from_dict", "plan_from_dict", "plan_to_dict", "read_document", "read_plan", "write_plan"]

MAX_BYTES = 2**30  # of a plan file


def write_plan(plan: Plan, path: str | Path) -> None:
    """Write a plan file, whole or not at all. More than ``MANY_EDGES`` logical edges go to a second file beside it.

    Raises:
        InputError: a file cannot be written, or the plan cannot be one (:func:`plan_to_dict`).
    """
    document = plan_to_document(plan)
    target = Path(os.path.realpath(path))
    if not isinstance(document.trees, TreesOnDemand) or (target.exists() and not target.is_file()):
        atomic_write(path, _text(document_to_json(document, trees_to_json(document.trees))))
        return
    content = trees_to_bytes(document)
    reference = tree_file_reference(target.name, content)
    text = _text(document_to_json(document, reference))
    beside = target.with_name(reference["file"])
    new = not beside.exists()
    atomic_write(beside, content)
    try:
        atomic_write(path, text)
    except BaseException:
        if new:
            beside.unlink(missing_ok=True)
        raise


def read_plan(path: str | Path) -> Plan:
    """Read a plan file for use. Its claims are not proved; :func:`read_document` serves the proof.

    Raises:
        InputError: it is no plan file, or it names what its topology does not have.
    """
    return within(str(path), document_to_plan, read_document(path))


def read_document(path: str | Path) -> PlanDocument:
    """Read a plan file as it stands. Trees in a file of their own are made when asked for.

    Raises:
        InputError: a file cannot be read or has not the form of a plan; with the line or the key.
    """
    where = str(path)
    data = SourceText.parse(read_bytes(path, MAX_BYTES), where).data
    return within(where, document_from_json, data, Path(os.path.realpath(path)).parent)


def plan_to_dict(plan: Plan) -> dict[str, Any]:
    """The plan as JSON-ready data, all of it.

    Raises:
        InputError: a number that is not finite or negative, or a route whose links do not follow one another.
    """
    document = plan_to_document(plan)
    return document_to_json(document, trees_to_json(document.trees))


def plan_from_dict(data: object, where: str) -> Plan:
    """Read what :func:`plan_to_dict` wrote; ``where`` names its origin in messages.

    Raises:
        InputError: the data has not the form of a plan, or names what its topology does not have.
    """
    return within(where, document_to_plan, document_from_dict(data, where))


def document_from_dict(data: object, where: str) -> PlanDocument:
    """Read parsed JSON as a plan document; ``where`` names its origin in messages.

    Raises:
        InputError: the data has not the form of a plan, with the place and the value.
    """
    return within(where, document_from_json, data, None)


def _text(data: dict[str, Any]) -> str:
    parts = []
    for key, value in data.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):  # one tree or price a line
            text = "[\n    " + ",\n    ".join(map(_json, value)) + "\n  ]"
        else:
            text = _json(value)
        parts.append(f'  "{key}": {text}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _json(value: object) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False)

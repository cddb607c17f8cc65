"""Topologies from files, whatever their format, and back."""

from __future__ import annotations

import json
import re
import sys
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from dualcoll.errors import InputError
from dualcoll.files import atomic_write, read_bytes, read_stream
from dualcoll.topology import cluster, native
from dualcoll.topology.catalog import catalog, entries
from dualcoll.topology.devices import Rates
from dualcoll.topology.importers import PLANNERS, ImportOptions, import_topology, sniff
from dualcoll.topology.model import Topology
from dualcoll.topology.native import topology_from_dict, topology_to_dict
from dualcoll.topology.source_text import SourceText

__all__ = ["read_topology", "split_name", "topology_from_dict", "topology_to_dict", "write_topology"]

_NATIVE = re.compile(rb"""\bformat["']?\s*:\s*["']?dualcoll\.""")
_SUFFIXES = {".yaml", ".yml", ".json"}


def read_topology(source: str | Path, options: ImportOptions | None = None) -> Topology:
    """The fabric in a file, or of that name in the catalogue.

    Args:
        source: a path, of a TACCL or TE-CCL file with keys behind it (docs/planner-files.md); ``"-"`` for standard input; or a
            name such as ``"dgx-h100:boxes=4"``. A file goes before a name.
        options: what an imported file does not say.

    Raises:
        InputError: neither a file nor a name, or content that cannot be used.
    """
    options = options or ImportOptions()
    text = str(source)
    if not text.strip():
        raise InputError("no topology was given", hint="name a file, - for standard input, or a name of the catalogue")
    if text == "-":
        where = "standard input"
        return _parse(read_stream(sys.stdin.buffer, where), where, options, Path())
    named = next((entry for entry in entries() if entry.name == text.partition(":")[0].strip().lower()), None)
    path = Path(text)
    try:
        found = path.is_file() or (path.exists() and named is None)
    except (OSError, ValueError):
        found = False
    if found:
        return _parse(read_bytes(path), text, options, path.parent)
    file, behind = split_name(text)
    if behind:
        return _parse(read_bytes(file), file, replace(options, behind=behind), Path(file).parent)
    if named is not None:
        if options != ImportOptions(rates=options.rates):
            raise InputError(
                "GPU, NIC, PCIe and CPU from outside are for imported files",
                where=text,
                hint="options of a catalogue name go behind its colon, such as dgx-h100:nic=25GB/s",
            )
        takes_rates = any(option.name == "rates" for option in named.options)
        if options.rates is not Rates.NOMINAL and takes_rates and "rates=" not in text:
            return catalog(text, rates=options.rates)
        return catalog(text)
    raise InputError(f"{text[:200]!r} is neither a file nor a name of the catalogue", hint=_advice(text))


def split_name(text: str) -> tuple[str, str]:
    """A file's name, and the keys behind it: ``topo.json:boxes=2``. No keys if it names no file so."""
    name, _, behind = text.rpartition(":")
    with suppress(OSError, ValueError):
        if "=" in behind and not Path(text).exists() and Path(name).is_file():
            return name, behind
    return text, ""


def _advice(text: str) -> str:
    name = text.partition(":")[0]
    close = get_close_matches(name[:60], [entry.name for entry in entries()], n=1)
    with suppress(OSError, ValueError):
        close += get_close_matches(Path(text).name, [p.name for p in Path(text).parent.iterdir()], n=1)
    return f"did you mean {' or '.join(close)}?" if close else "`dualcoll topo list` shows the names"


def _parse(data: bytes, where: str, options: ImportOptions, folder: Path) -> Topology:
    if not _NATIVE.search(data):
        should_be_native = Path(where).suffix.lower() in _SUFFIXES
        if not _is_utf8(data) and (should_be_native or sniff(data) is None):
            raise InputError("it is not UTF-8 text", where=where, hint="save it as UTF-8")
        if should_be_native and sniff(data) not in PLANNERS:
            raise InputError("it has no format", where=where, hint=f"begin a topology with `format: {native.FORMAT}`")
        return import_topology(data, where, options)
    if options.behind:
        raise InputError("nothing is read behind the name of a native file", where=f"{where}:{options.behind[:60]}")
    if options != ImportOptions():
        raise InputError(
            "GPU, NIC, PCIe, CPU and rates from outside are for imported files; this one is native", where=where
        )
    text = SourceText.parse(data, where)
    found = text.data.get("format") if isinstance(text.data, dict) else None
    if found == native.FORMAT:
        return native.topology_from_data(text.data, text.place)
    if found == cluster.FORMAT:
        return cluster.cluster_from_data(text.data, text.place, lambda name, given: _parse_box(folder, name, given))
    hint = f"a fabric has {native.FORMAT} or {cluster.FORMAT}"
    problem = "the format is missing" if found is None else f"{str(found)[:60]!r} is no format of a fabric"
    raise InputError(problem, where=text.place(("format",)), hint=hint)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in data  # which UTF-16 is full of


def _parse_box(folder: Path, name: str, options: ImportOptions) -> Topology:
    """The topology file of a box, relative to the cluster file's folder."""
    try:
        data = read_bytes(folder / name)
    except ValueError:
        raise InputError(f"{name[:60]!r} is not the name of a file") from None
    if _NATIVE.search(data) and cluster.FORMAT.encode() in data:
        raise InputError("a cluster cannot stand in a cluster", where=name, hint="list its boxes here")
    return _parse(data, name, options, folder)


def write_topology(topology: Topology, path: str | Path) -> None:
    """Write the native format: JSON for ``.json``, YAML for ``.yaml`` and ``.yml``; whole or not at all.

    Raises:
        InputError: another suffix, a number that no file may hold, or a file that cannot be written.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in _SUFFIXES:
        raise InputError(f"suffix {suffix!r} says no format", where=str(path), hint="use .yaml or .json")
    data = topology_to_dict(topology)
    if suffix == ".json":
        atomic_write(path, json.dumps(data, indent=1, ensure_ascii=False) + "\n")
        return
    dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    atomic_write(
        path, yaml.dump(data, Dumper=dumper, default_flow_style=None, sort_keys=False, width=10_000, allow_unicode=True)
    )

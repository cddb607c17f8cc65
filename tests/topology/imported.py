"""What the tests of importers share: fixtures, flags, and topologies as dictionaries."""

from __future__ import annotations

from pathlib import Path

from dualcoll.errors import InputError
from dualcoll.topology.devices import Rates
from dualcoll.topology.importers import ImportOptions, import_topology
from dualcoll.topology.model import Kind, Topology

FIXTURES = Path(__file__).parent.parent / "fixtures"


def options(
    gpu: str | None = None,
    nic: str | None = None,
    pcie: str | None = None,
    rates: Rates = Rates.NOMINAL,
    cpu: str | None = None,
) -> ImportOptions:
    return ImportOptions(gpu=gpu, nic=nic, pcie=pcie, cpu=cpu, rates=rates)


def fixture(name: str) -> bytes:
    return (FIXTURES / name).read_bytes()


def read(data: bytes | str, flags: ImportOptions | None = None) -> Topology:
    return import_topology(data if isinstance(data, bytes) else data.encode(), "f", flags or ImportOptions())


def refusal(data: bytes | str, flags: ImportOptions | None = None) -> str:
    """The whole message of the error; an import that succeeds is a failure."""
    try:
        read(data, flags)
    except InputError as error:
        return str(error)
    raise AssertionError("it was imported")


def flag_notes(topology: Topology) -> list[str]:
    """The notes that begin with a flag, whole."""
    return [note for note in topology.notes if note.startswith("--")]


def links(topology: Topology) -> dict[tuple[str, str], float]:
    """GB/s of each directed pair, parallel links added up, rounded to 1e-6."""
    sums: dict[tuple[str, str], float] = {}
    for link in topology.links:
        pair = topology.nodes[link.tail].name, topology.nodes[link.head].name
        sums[pair] = round(sums.get(pair, 0.0) + link.capacity / 1e9, 6)
    return sums


def names(topology: Topology, kind: Kind) -> list[str]:
    return [node.name for node in topology.nodes if node.kind is kind]

"""Results as TE-CCL writes them, made by hand on its smallest fabrics."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dualcoll.topology.importers.teccl_fabrics import FabricName, teccl_fabric
from dualcoll.topology.model import Kind

Data = dict[str, Any]
Change = Callable[[Data], None]

# the 2 x 2 mesh of TE-CCL's code: 0-1, 2-3, 0-2, 1-3, and 1-2, which wraps round the row
FIRST = ((0, 1), (0, 2), (1, 0), (1, 2), (1, 3), (2, 0), (2, 1), (2, 3), (3, 1), (3, 2))


def mesh_allgather() -> Data:
    """Everybody's chunk to the neighbours, then the chunks of 0 and 3 over 1: 2 epochs of 1 s, chunks of 100 GB."""
    flows = [f"Chunk 0 from {a} traveled over {a}->{b} in epoch 0" for a, b in FIRST]
    flows += [f"Chunk 0 from {a} traveled over 1->{b} in epoch 1" for a, b in ((0, 3), (3, 0))]
    late = {(0, 3), (3, 0)}
    met = {
        f"GPU {b}": {f"GPU {a}": {"Chunk 0": 2.0 if (a, b) in late else 1.0} for a in range(4) if a != b}
        for b in range(4)
    }
    return _data(1.0, 2, 200.0) | {"6-Demand_Met": met, "7-Flows": flows}


def mesh_alltoall() -> Data:
    """Chunks for neighbours at once; those between 0 and 3 in halves over 1 and 2: 3 epochs, the older names of keys."""
    flows = [f"Chunk {b} from {a} traveled over {a}->{b} with volume 1.0 in epoch 0" for a, b in FIRST]
    for a, b in ((0, 3), (3, 0)):
        for via in (1, 2):
            flows.append(f"Chunk {b} from {a} traveled over {a}->{via} with volume 0.5 in epoch 1")
            flows.append(f"Chunk {b} from {a} traveled over {via}->{b} with volume 0.5 in epoch 2")
    return _data(1.0, 3, 400 / 3) | {"6-Flows": flows}


def serial_allgather(fabric: FabricName, chunk: float, epoch: float) -> Data:
    """One flow after the other along shortest ways, where no link takes longer than an epoch for a chunk of so many bytes."""
    topology = teccl_fabric(fabric)
    switches = {i for i, node in enumerate(topology.nodes) if node.kind is Kind.SWITCH}
    out: dict[int, list[int]] = {i: [] for i in range(len(topology.nodes))}
    for link in topology.links:
        out[link.tail].append(link.head)
    flows: list[str] = []
    when = 0
    for source in topology.ranks:
        seen, queue = {source}, deque([source])
        while queue:
            node = queue.popleft()
            ways: list[tuple[int, ...]] = [(head,) for head in out[node] if head not in switches]
            ways += [(head, end) for head in out[node] if head in switches for end in out[head] if end not in switches]
            for *between, head in ways:
                if head in seen:
                    continue
                via = f" via switches {between[0]}" if between else ""
                flows.append(f"Chunk 0 from {source} traveled over {node}->{head} in epoch {when}{via}")
                when += 1
                seen.add(head)
                queue.append(head)
    return _data(epoch, when, chunk * fabric.counted / (when * epoch) / 1e9) | {"7-Flows": flows}


def _data(epoch: float, epochs: int, bandwidth: float) -> Data:
    return {
        "1-Epoch_Duration": epoch,
        "2-Expected_Epoch_Duration": epoch,
        "3-Epochs_Required": epochs,
        "4-Collective_Finish_Time": epochs * epoch,
        "5-Algo_Bandwidth": bandwidth,
        "Solver_Time": 0.1,
    }


def saved(folder: Path, data: object, name: str = "file.json") -> Path:
    """The data in a file."""
    path = folder / name
    path.write_text(json.dumps(data))
    return path

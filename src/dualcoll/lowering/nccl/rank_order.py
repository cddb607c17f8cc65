"""Which process runs where: one line for each rank, in rank order, with the host's name.

``mpirun --hostfile FILE --map-by seq`` of Open MPI and ``SLURM_HOSTFILE=FILE srun --distribution=arbitrary`` read this form;
NCCL takes the ranks as they come. On its host, the k-th process uses the k-th GPU.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from dualcoll.errors import InputError
from dualcoll.files import atomic_write, read_bytes
from dualcoll.topology.model import Topology

__all__ = ["check_rank_order", "rank_hosts", "read_rank_order", "write_rank_order"]

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,252}[A-Za-z0-9])?")


def rank_hosts(topology: Topology, ranks: Sequence[int], hosts: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The host of each rank, (R,).

    Args:
        topology: the fabric. ranks: node indices in rank order, such as those of a plan's group or of a ring.
        hosts: the host's name for each box; the box's own by default.

    Raises:
        InputError: a box without a host, two boxes on one, or ranks of a box that are not in the order of its GPUs.
    """
    boxes: dict[str, list[int]] = defaultdict(list)
    for node in ranks:
        boxes[topology.nodes[node].box or topology.nodes[node].name].append(node)
    names = {box: box for box in boxes} if hosts is None else dict(hosts)
    for box, members in boxes.items():
        if box not in names:
            raise InputError(
                f"no host is given for box {box}", where="hosts", hint=f"name one for each of {', '.join(boxes)}"
            )
        if members != sorted(members):
            local = sorted(members)
            devices = ",".join(str(local.index(node)) for node in members)
            raise InputError(
                f"the ranks of box {box} do not follow its GPUs, and the file cannot say so",
                where="ranks",
                hint=f"list them in the order of the GPUs and set CUDA_VISIBLE_DEVICES={devices} on that host",
            )
    used = [names[box] for box in boxes]
    if len(set(used)) < len(used):
        raise InputError("two boxes are on one host", where="hosts", hint="give each box its own host")
    return tuple(names[topology.nodes[node].box or topology.nodes[node].name] for node in ranks)


def write_rank_order(hosts: Sequence[str], path: str | Path) -> None:
    """Write the host of each rank, whole or not at all.

    Raises:
        InputError: no ranks, a name that is no host's, or the file cannot be written.
    """
    if not hosts:
        raise InputError("no ranks", where=str(path))
    for rank, host in enumerate(hosts):
        if not _HOST.fullmatch(host):
            problem = f"{host[:60]!r} is no host name"
            raise InputError(problem, where=f"rank {rank}", hint="give the real name of each box's host")
    atomic_write(path, "".join(f"{host}\n" for host in hosts))


def read_rank_order(path: str | Path) -> tuple[str, ...]:
    """The host of each rank; blank lines and what follows ``#`` are no ranks.

    Raises:
        InputError: a line that is no host name, with file and line, or no ranks.
    """
    hosts = []
    for number, line in enumerate(read_bytes(path).decode("utf-8", "replace").splitlines(), 1):
        host = line.partition("#")[0].strip()
        if host and not _HOST.fullmatch(host):
            hint = "this form has one host on each line, without slots"
            raise InputError(f"{host[:60]!r} is no host name", where=f"{path}:{number}", hint=hint)
        if host:
            hosts.append(host)
    if not hosts:
        raise InputError("it names no host", where=str(path))
    return tuple(hosts)


def check_rank_order(data: bytes, topology: Topology, ranks: Sequence[int]) -> tuple[str, ...]:
    """Whether the file puts ranks of one box on one host and those of others elsewhere: one sentence for each that it does not.

    Args:
        ranks: node indices in rank order.
    """
    lines = [line for line in data.decode("utf-8", "replace").split() if line]
    if len(lines) != len(ranks):
        return (f"{len(lines)} lines for {len(ranks)} ranks",)
    findings, host_of, box_of = [], dict[str | None, str](), dict[str, str | None]()
    for rank, (host, node) in enumerate(zip(lines, ranks, strict=True)):
        box = topology.nodes[node].box
        if host_of.setdefault(box, host) != host:
            findings.append(f"rank {rank} of box {box} is on {host}, others of it on {host_of[box]}")
        elif box_of.setdefault(host, box) != box:
            findings.append(f"rank {rank} of box {box} is on {host}, as is box {box_of[host]}")
    return tuple(findings)

"""Options that say what is to be carried and how it travels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualcoll.errors import InputError

if TYPE_CHECKING:
    from dualcoll.collectives.workload import Workload
    from dualcoll.topology.model import Topology

__all__ = [
    "Collective",
    "DemandFile",
    "Groups",
    "Mix",
    "NoRelay",
    "ObjectiveName",
    "Ranks",
    "Root",
    "RoutingName",
    "Size",
    "Weights",
    "workload_of",
]

DEFAULT_SIZE = "1G"

Collective = Annotated[
    str | None,
    typer.Argument(
        metavar="COLLECTIVE",
        help="allreduce, broadcast, reduce, allgather, reducescatter, gather, scatter, alltoall or alltoallv, in any "
        "spelling. Left out with --mix.",
        show_default=False,
    ),
]
Size = Annotated[
    str | None,
    typer.Option(
        "--size",
        help="Message, as nccl-tests counts it: K, M, G are binary; KiB, MB say themselves. [default: 1G]",
        show_default=False,
    ),
]
Ranks = Annotated[
    str | None, typer.Option("--ranks", metavar="LIST", help="Who takes part: 0-7,12 or names. [default: all]")
]
Root = Annotated[
    str | None,
    typer.Option("--root", metavar="RANK", help="Of broadcast, reduce, gather, scatter. [default: first rank]"),
]
Weights = Annotated[
    str | None, typer.Option("--weights", metavar="LIST", help="Relative sizes of the shards, by rank: 1,1,2,…")
]
DemandFile = Annotated[
    Path | None,
    typer.Option("--demand", metavar="FILE", help="Of alltoallv: a matrix of bytes, a CSV, or expert-routing counts."),
]
Groups = Annotated[
    str | None,
    typer.Option(
        "--groups",
        metavar="FILE|PATTERN",
        help="Several groups at once: '8 groups of stride 8', 'groups of 8', '0-7;8-15', or a file.",
    ),
]
ObjectiveName = Annotated[str, typer.Option("--objective", help="With groups: slowest, or total rate.")]
Mix = Annotated[
    Path | None, typer.Option("--mix", metavar="FILE", help="Different collectives on different groups at once.")
]
RoutingName = Annotated[
    str,
    typer.Option(
        "--routing",
        help="Who chooses paths: single (the plan), spray, spray-cables, spray-hops or ecmp (the network).",
    ),
]
NoRelay = Annotated[bool, typer.Option("--no-relay", help="Ranks do not pass on what one of them sends another.")]


def workload_of(fabric: Topology, collective: str | None, mix: Path | None, asked: dict[str, Any]) -> Workload:
    """What the arguments ask for.

    Args:
        asked: ``size, ranks, root, weights, demand, groups, objective`` as given on the command line, the demand as it was
            read.

    Raises:
        InputError: neither a collective nor a mix, both, or anything unusable in them.
    """
    from dualcoll.collectives.mix import read_mix
    from dualcoll.collectives.request import make_workload

    if mix is not None:
        given = [name for name in ("size", "ranks", "root", "weights", "demand", "groups") if asked[name] is not None]
        if collective is not None or given:
            other = "COLLECTIVE" if collective is not None else f"--{given[0]}"
            raise InputError(f"--mix and {other} exclude each other", hint="say it all in the mix file")
        return read_mix(mix, fabric, asked["objective"])
    if collective is None:
        raise InputError("no collective is given", where="COLLECTIVE", hint="name one, such as allreduce, or use --mix")
    weights = None if asked["weights"] is None else _numbers(asked["weights"])
    size = DEFAULT_SIZE if asked["size"] is None else asked["size"]
    return make_workload(fabric, collective, **{**asked, "weights": weights, "size": size})


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"{text!r} is not a list of whole numbers", where="--weights", hint="such as 1,1,2,2"
        ) from None

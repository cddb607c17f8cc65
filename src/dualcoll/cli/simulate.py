"""``dualcoll simulate`` and ``dualcoll compare``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dualcoll.cli.options import Cpu, Gpu, Html, Json, Nic, Pcie, RatesName, TopologySpec, load, writable
from dualcoll.cli.output import on_line, say, show_json, show_lines, status_line
from dualcoll.cli.workload import Ranks, Root
from dualcoll.errors import InputError

if TYPE_CHECKING:
    from dualcoll._api.comparing import Entrant
    from dualcoll.simulation import Options
    from dualcoll.topology.model import Topology

__all__ = ["compare", "simulate"]

Mode = Annotated[str, typer.Option("--mode", help="alpha-beta (links serve one send after the other) or fluid.")]
Coupling = Annotated[str, typer.Option("--coupling", help="In the fluid model, what has one rate: flow or tree.")]
StoreAndForward = Annotated[bool, typer.Option("--store-and-forward", help="A hop begins when the one before ended.")]
Depth = Annotated[
    int | None, typer.Option("--depth", min=1, metavar="D", help="Places of every channel. [default: any]")
]
Overhead = Annotated[
    str, typer.Option("--overhead", metavar="TIME", help="Spent on each send before its first byte: 2us.")
]
Concurrency = Annotated[
    int | None, typer.Option("--concurrency", min=1, metavar="N", help="Most sends of a rank at once, out and in.")
]
Reduction = Annotated[
    str | None, typer.Option("--reduction-speed", metavar="RATE", help="Bytes/s that a rank reduces: 500GB/s.")
]
Protocol = Annotated[str | None, typer.Option("--protocol", help="NCCL's ll, ll128 or simple: payload and latencies.")]
InOrder = Annotated[bool, typer.Option("--in-order", help="Links serve sends in the schedule's order; none overtakes.")]


def simulate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A plan, schedule or program.", show_default=False)],
    topology: Annotated[
        str | None,
        typer.Option(
            "--topology", metavar="SPEC", help="Of a program (MSCCL XML, MSCCL++ plan): the fabric that it runs on."
        ),
    ] = None,
    size: Annotated[str | None, typer.Option("--size", help="Message, if not the plan's: 64M.")] = None,
    chunks: Annotated[str, typer.Option("--chunks", help="Pieces that a plan is cut into, or auto.")] = "auto",
    mode: Mode = "alpha-beta",
    coupling: Coupling = "flow",
    store_and_forward: StoreAndForward = False,
    depth: Depth = None,
    overhead: Overhead = "0us",
    concurrency: Concurrency = None,
    reduction_speed: Reduction = None,
    protocol: Protocol = None,
    in_order: InOrder = False,
    trace_file: Annotated[
        Path | None, typer.Option("--trace", metavar="FILE", help="Save events for Perfetto or chrome://tracing.")
    ] = None,
    timeline: Annotated[
        bool, typer.Option("--timeline", help="Also print what each rank sends, gets and owns, and who shares links.")
    ] = False,
    html: Html = None,
    gpu: Gpu = None,
    nic: Nic = None,
    pcie: Pcie = None,
    cpu: Cpu = None,
    rates: RatesName = "nominal",
    as_json: Json = False,
) -> None:
    """Say how long a plan, a schedule or a program takes, and why."""
    writable(trace_file, "--trace", file)
    writable(html, "--html", file, trace_file)
    assumed = _options(
        mode, coupling, store_and_forward, depth, overhead, concurrency, reduction_speed, protocol, in_order
    )
    from dualcoll.cli.documents import schedule_from
    from dualcoll.reporting.runs import trace_record, trace_text
    from dualcoll.simulation import simulate as run
    from dualcoll.simulation import to_chrome

    fabric = None if topology is None else load(topology, gpu, nic, pcie, cpu, rates)
    drawn = schedule_from(file, size, chunks, assumed, fabric)
    if drawn.topology is None:
        raise InputError(
            "it stands on no fabric, so nothing says how long it takes", where=str(file), hint="add --topology"
        )
    trace = run(drawn, assumed)
    if trace_file is not None:
        from dualcoll.files import atomic_write

        atomic_write(trace_file, json.dumps(to_chrome(trace, drawn)))
    if html is not None:
        from dualcoll.reporting.schedule_page import schedule_page

        schedule_page(drawn, html, trace)
    if as_json:
        show_json(trace_record(trace, drawn))
    else:
        show_lines(trace_text(trace, drawn))
    if timeline and not as_json:
        from dualcoll.reporting.route_map import route_map, route_map_text
        from dualcoll.reporting.timeline import timeline as follow
        from dualcoll.reporting.timeline_text import timeline_text

        typer.echo(timeline_text(follow(drawn)))
        show_lines(route_map_text(route_map(drawn)))
    for path in filter(None, (trace_file, html)):
        say(f"saved {path}")


def compare(
    topology: TopologySpec,
    collective: Annotated[str, typer.Argument(metavar="COLLECTIVE", show_default=False)],
    sizes: Annotated[
        str, typer.Option("--sizes", help="1K:8G doubles from the first as far as the last; or 1M,64M.")
    ] = "1K:1G",
    ranks: Ranks = None,
    root: Root = None,
    forward: Annotated[str, typer.Option("--forward", help="switches, or all.")] = "switches",
    gap: Annotated[str, typer.Option("--gap", help="Of the plan.")] = "1%",
    seconds: Annotated[float, typer.Option("--seconds", help="For the plan.")] = 30.0,
    seed: Annotated[int, typer.Option("--seed", min=0)] = 0,
    mode: Mode = "alpha-beta",
    coupling: Coupling = "flow",
    store_and_forward: StoreAndForward = False,
    depth: Depth = None,
    overhead: Overhead = "0us",
    concurrency: Concurrency = None,
    reduction_speed: Reduction = None,
    protocol: Protocol = None,
    files: Annotated[
        list[Path] | None,
        typer.Option(
            "--with", metavar="FILE", help="Also a schedule or program (MSCCL XML, MSCCL++ plan); again for more."
        ),
    ] = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Save every result.")] = None,
    gpu: Gpu = None,
    nic: Nic = None,
    pcie: Pcie = None,
    cpu: Cpu = None,
    rates: RatesName = "nominal",
    as_json: Json = False,
) -> None:
    """Simulate the proved plan and every classical algorithm at every size: who wins where, and what the bound leaves."""
    writable(csv_file, "--csv", topology, *(files or ()))
    assumed = _options(mode, coupling, store_and_forward, depth, overhead, concurrency, reduction_speed, protocol)
    from dualcoll._api import compare as run
    from dualcoll.cli.searching import interruptible
    from dualcoll.progress import Meter, Stop
    from dualcoll.reporting.comparison import comparison_csv, comparison_record, comparison_text
    from dualcoll.units import parse_fraction

    stop = Stop(gap=parse_fraction(gap), seconds=seconds)
    fabric = load(topology, gpu, nic, pcie, cpu, rates)
    entrants = [_entrant(file, None if ranks else fabric, assumed) for file in files or ()]
    with status_line() as line:
        meter = Meter(stop, on_line(line))
        with interruptible(meter):
            found = run(
                fabric,
                collective,
                sizes=sizes,
                ranks=ranks,
                root=root,
                forward=forward,
                seed=seed,
                options=assumed,
                report=line,
                meter=meter,
                entrants=entrants,
            )
    if csv_file is not None:
        from dualcoll.files import atomic_write

        atomic_write(csv_file, comparison_csv(found))
    if as_json:
        show_json(comparison_record(found))
    else:
        show_lines(comparison_text(found))
    if csv_file is not None:
        say(f"saved {csv_file}")


def _entrant(file: Path, fabric: Topology | None, options: Options) -> Entrant:
    """A file that takes part; programs keep the routes of the file beside them where it is of this fabric."""
    from dualcoll._api.comparing import Entrant
    from dualcoll.cli.documents import AUTO, kind_of, schedule_from

    kind = kind_of(file)
    low, high = 0, 0
    if kind == "msccl":
        from dualcoll.lowering.msccl.read import read_msccl

        program = read_msccl(file)
        low, high = program.min_bytes or 0, program.max_bytes or 0
    elif kind == "mscclpp":
        from dualcoll.lowering.mscclpp import read_plan

        plan = read_plan(str(file))
        low, high = plan.min_size, plan.max_size
    made = schedule_from(file, None, AUTO, options, fabric if kind in ("msccl", "mscclpp", "sccl") else None)
    return Entrant(file.name, made, low, high)


def _options(
    mode: str,
    coupling: str,
    store_and_forward: bool,
    depth: int | None,
    overhead: str,
    concurrency: int | None,
    reduction_speed: str | None,
    protocol: str | None,
    in_order: bool = False,
) -> Options:
    from dualcoll.simulation import Options
    from dualcoll.units import parse_bandwidth, parse_time

    if coupling != "flow" and mode != "fluid":
        raise InputError("it is of the fluid model", where="--coupling", hint="add --mode fluid")
    if store_and_forward and mode == "fluid":
        raise InputError("it is of the alpha-beta model", where="--store-and-forward", hint="leave out --mode fluid")
    if in_order and mode == "fluid":
        raise InputError("it is of the alpha-beta model", where="--in-order", hint="leave out --mode fluid")
    try:
        return Options(
            mode=mode,
            coupling=coupling,
            cut_through=not store_and_forward,
            depth=depth,
            overhead=parse_time(overhead),
            concurrency=concurrency,
            reduction_speed=None if reduction_speed is None else parse_bandwidth(reduction_speed),
            protocol=protocol,
            in_order=in_order,
        )
    except InputError as error:
        raise error.within("simulation") from None

"""``dualcoll plan``."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualcoll.cli.options import Cpu, Gpu, Html, Json, Nic, Out, Pcie, RatesName, TopologySpec, load, writable
from dualcoll.cli.output import say, show_json, show_lines
from dualcoll.cli.searching import Forward, GapText, Method, SecondsText, Seed, demand_of, searched, stop_of
from dualcoll.cli.teccl_input import input_task, is_teccl_input
from dualcoll.cli.time_expanded import (
    Buffer,
    Checkpoint,
    ChunksPerRank,
    Earliest,
    EngineName,
    Epoch,
    EpochOptions,
    Failed,
    IgnoreLatency,
    LatentSwitches,
    Multiplier,
    NoCopy,
    ReductionSpeed,
    Resume,
    SwitchCopy,
    Tenants,
    plan_in_epochs,
    task_in_epochs,
)
from dualcoll.cli.workload import (
    Collective,
    DemandFile,
    Groups,
    Mix,
    NoRelay,
    ObjectiveName,
    Ranks,
    Root,
    RoutingName,
    Size,
    Weights,
    workload_of,
)
from dualcoll.errors import InputError

if TYPE_CHECKING:
    from dualcoll._api.choosing import Choice
    from dualcoll.plans.model import Alternative, Plan
    from dualcoll.progress import Meter

__all__ = ["plan"]

MANY_RANKS = 128  # for the usual choice to be simulated
CHOICE_SECONDS = 15.0  # for schedules in epochs beside trees
MANY_SENDS = 5000  # demands, for a second plan without relaying

MaxTrees = Annotated[
    int | None, typer.Option("--max-trees", metavar="K", min=1, help="The best found with so few trees.")
]
MaxDepth = Annotated[
    int | None, typer.Option("--max-depth", metavar="D", min=1, help="At most so many logical edges from root to rank.")
]
From = Annotated[
    Path | None,
    typer.Option("--from", metavar="PLAN", help="Start from a plan file of the same ranks on a similar fabric."),
]
Pareto = Annotated[bool, typer.Option("--pareto", help="Also print what fewer trees reach: trees, rate, depth.")]
Sharing = Annotated[
    str | None,
    typer.Option(
        "--sharing", metavar="max-min", help="Also say what the network's own fair sharing makes of the plan."
    ),
]
Copies = Annotated[
    int | None, typer.Option("--copies", metavar="Y", min=1, help="With --sharing: scale of the copies.")
]
Accuracy = Annotated[
    str | None,
    typer.Option("--accuracy", metavar="MU", help="With --sharing: how close copies come to the rates: 10%."),
]


def plan(
    topology: TopologySpec,
    collective: Collective = None,
    size: Size = None,
    gap: GapText = "1%",
    seconds: SecondsText = 30.0,
    ranks: Ranks = None,
    root: Root = None,
    weights: Weights = None,
    demand: DemandFile = None,
    groups: Groups = None,
    objective: ObjectiveName = "slowest",
    mix: Mix = None,
    routing: RoutingName = "single",
    no_relay: NoRelay = False,
    forward: Forward = "switches",
    method: Method = "auto",
    seed: Seed = 0,
    max_trees: MaxTrees = None,
    max_depth: MaxDepth = None,
    previous: From = None,
    pareto: Pareto = False,
    sharing: Sharing = None,
    copies: Copies = None,
    accuracy: Accuracy = None,
    output: Out = None,
    html: Html = None,
    gpu: Gpu = None,
    nic: Nic = None,
    pcie: Pcie = None,
    cpu: Cpu = None,
    rates: RatesName = "nominal",
    engine: EngineName = None,
    epoch: Epoch = None,
    multiplier: Multiplier = None,
    chunks_per_rank: ChunksPerRank = None,
    tenants: Tenants = None,
    switch_copy: SwitchCopy = False,
    latent_switches: LatentSwitches = False,
    ignore_latency: IgnoreLatency = None,
    buffer: Buffer = None,
    no_copy: NoCopy = False,
    reduction_speed: ReductionSpeed = None,
    earliest: Earliest = False,
    checkpoint: Checkpoint = None,
    resume: Resume = None,
    fail: Failed = None,
    as_json: Json = False,
) -> None:
    """Find a plan, prove how good it is, and say what limits it."""
    inputs = (topology, previous, demand, mix, groups, tenants)
    writable(output, "--output", *inputs, resume)
    writable(html, "--html", *inputs, output, resume)
    writable(checkpoint, "--checkpoint", *inputs, output, html)
    in_epochs = EpochOptions(
        engine,
        epoch,
        multiplier,
        chunks_per_rank,
        tenants,
        switch_copy,
        latent_switches,
        ignore_latency,
        buffer,
        no_copy,
        reduction_speed,
        earliest,
        checkpoint,
        resume,
        fail,
    )
    carried: dict[str, Any] = {
        "size": size,
        "ranks": ranks,
        "root": root,
        "weights": weights,
        "groups": groups,
        "objective": objective,
    }
    if method == "time-expanded":
        _refuse_rates(routing, max_trees, max_depth, previous, pareto, sharing)
        if tenants is not None and mix is not None:
            raise InputError("--tenants and --mix exclude each other")
        notes: tuple[str, ...] = ()
        if collective is None and (tenants or mix) is None and is_teccl_input(topology):
            said = {"--size": size, "--ranks": ranks, "--root": root, "--weights": weights, "--demand": demand}
            said |= {"--groups": groups, "--gpu": gpu, "--nic": nic, "--pcie": pcie, "--cpu": cpu}
            task, notes = input_task(topology, in_epochs, said, relay=not no_relay)
        else:
            fabric = load(topology, gpu, nic, pcie, cpu, rates)
            work = workload_of(fabric, collective, tenants or mix, {**carried, "demand": demand_of(demand)})
            task = task_in_epochs(fabric, work, in_epochs, forward=forward, relay=not no_relay)
        plan_in_epochs(
            task,
            in_epochs,
            notes=notes,
            seed=seed,
            stop=stop_of(gap, seconds),
            output=output,
            html=html,
            as_json=as_json,
        )
        return
    in_epochs.refuse()
    if collective is None and mix is None and is_teccl_input(topology):
        hint = "add --method time-expanded, or name a collective to take the fabric alone"
        raise InputError("a TE-CCL input asks for a schedule in epochs", where=topology, hint=hint)
    tolerance = _sharing_wishes(sharing, copies, accuracy)
    from dualcoll.reporting.tables import plan_record, plan_text

    start = None
    if previous is not None:
        from dualcoll.plans.file import read_plan

        start = read_plan(previous)
    matrix = demand_of(demand)
    carried["demand"] = matrix
    wishes = {"max_trees": max_trees, "max_depth": max_depth, "start": start, "pareto": pareto}
    asked = {"forward": forward, "relay": not no_relay, "routing": routing, "method": method, "seed": seed, **wishes}
    made = searched(topology, collective, mix, carried, (gap, seconds), (gpu, nic, pcie, cpu, rates), asked)
    with suppress(KeyboardInterrupt):  # the plan is kept
        made = replace(made, alternatives=(*made.alternatives, *_alternatives(made, asked, (gap, seconds))))
    choice = None
    if method == "auto" and sharing is None and not any(wishes.values()):
        choice = _choice(made, seconds, seed)
    if output is not None:
        _save(made, choice, output)
    if html is not None:
        from dualcoll.reporting.html import report

        report(made, html)
    record, lines = (plan_record(made), []) if as_json else ({}, plan_text(made))
    if choice is not None:
        record["chosen"] = {"text": choice.text, "simulated_s": choice.seconds, "trees_s": choice.trees}
        lines.append(("chosen", choice.text))
    if matrix is not None:
        from dualcoll.collectives.description import describe_demand

        told = describe_demand(matrix)
        record["demand"] = list(told)
        lines += [("demand" if i == 0 else "", text) for i, text in enumerate(told)]
    if sharing is not None:
        from dualcoll.reporting.sharing import sharing_record, sharing_text
        from dualcoll.sharing import share

        shared = share(made, copies=copies, accuracy=tolerance)
        if as_json:
            record["sharing"] = sharing_record(shared)
        else:
            lines += sharing_text(shared)
    if as_json:
        show_json(record)
    else:
        show_lines(lines)
    for path in filter(None, (output, html)):
        say(f"saved {path}")


def _choice(made: Plan, seconds: float, seed: int) -> Choice | None:
    """Whether epochs serve this size better than trees, within the time that is left."""
    from dualcoll._api.choosing import choose
    from dualcoll.progress import Meter, Outcome, Seconds

    left = seconds - made.seconds
    if left <= 0 or made.outcome is Outcome.INTERRUPTED:
        return None
    clocks: list[Meter] = []

    def clock(share: float) -> Meter:
        clocks.append(Meter(Seconds(share * min(left, CHOICE_SECONDS))))
        return clocks[-1]

    with suppress(KeyboardInterrupt):  # the plan is kept
        return choose(made, clock, seed=seed)
    return None


def _save(made: Plan, choice: Choice | None, output: Path) -> None:
    if choice is None or choice.schedule is None:
        from dualcoll.plans.file import write_plan

        write_plan(made, output)
    else:
        from dualcoll.schedules.file import write_schedule

        write_schedule(choice.schedule, output)


def _alternatives(made: Plan, asked: dict[str, Any], limits: tuple[str, float]) -> list[Alternative]:
    """What a library's usual choice would do, and sends without relaying, where that is quick to say."""
    from dualcoll._api import plan as make_plan
    from dualcoll._api import usual_choice
    from dualcoll.collectives.workload import Pattern
    from dualcoll.plans.model import Alternative
    from dualcoll.progress import Outcome, Stop
    from dualcoll.units import format_bandwidth, format_time, parse_fraction

    if made.outcome is Outcome.INTERRUPTED:
        return []
    found = []
    if len(made.participants) <= MANY_RANKS:
        usual = usual_choice(made)
        if usual is not None:
            text = f"the usual library choice, {usual.method}, simulated: {format_time(usual.seconds)}"
            found.append(Alternative(usual.size / usual.seconds, text))
    demands, left = made.workload.demands(), limits[1] - made.seconds
    if left > 0 and made.relay and demands[0].pattern is Pattern.SEND and len(demands) <= MANY_SENDS:
        stop = Stop(gap=parse_fraction(limits[0]), seconds=left)
        try:
            direct = make_plan(made.topology, made.workload, stop=stop, **{**asked, "relay": False, "pareto": False})
            text = f"without relaying (--no-relay), of {format_bandwidth(direct.bound)} that are possible so"
            found.append(Alternative(direct.value, text))
        except InputError:
            found.append(Alternative(0.0, "without relaying (--no-relay): some ranks cannot reach each other directly"))
    return found


def _sharing_wishes(sharing: str | None, copies: int | None, accuracy: str | None) -> float | None:
    """The accuracy as a number.

    Raises:
        InputError: sharing that is not known, copies or accuracy without it, both, or no accuracy at all.
    """
    if sharing not in (None, "max-min"):
        raise InputError(f"{sharing!r} is not known", where="--sharing", hint="use max-min")
    for flag, value in (("--copies", copies), ("--accuracy", accuracy)):
        if value is not None and sharing is None:
            raise InputError("it says how trees share without rate control", where=flag, hint="add --sharing max-min")
    if accuracy is None:
        return None
    if copies is not None:
        raise InputError("the number of copies follows from it", where="--accuracy", hint="leave out --copies")
    from dualcoll.units import parse_fraction

    try:
        tolerance = parse_fraction(accuracy)
    except InputError as error:
        raise error.within("--accuracy") from None
    if tolerance == 0:
        raise InputError(
            "no number of copies is sure to be exact", where="--accuracy", hint="10% keeps 1/1.1 of each rate"
        )
    return tolerance


def _refuse_rates(routing: str, *wishes: object) -> None:
    """Refuse options of trees with rates.

    Raises:
        InputError: one of them was given.
    """
    flags = ("--max-trees", "--max-depth", "--from", "--pareto", "--sharing")
    given = [flag for flag, value in zip(flags, wishes, strict=True) if value not in (None, False)]
    if routing != "single":
        given.append("--routing")
    if given:
        raise InputError("it is of trees with rates", where=given[0], hint="leave it out with --method time-expanded")

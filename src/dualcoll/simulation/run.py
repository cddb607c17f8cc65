"""Running the kernels and putting what they find into a trace."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualcoll.errors import CheckFailed, InputError
from dualcoll.kernels.alpha_beta import alpha_beta, booked
from dualcoll.kernels.fluid import fluid
from dualcoll.kernels.shared_rates import FLOW, ROW, UNIT, USE, Flows, Rows, Units, Uses
from dualcoll.schedules.ir import NONE, Schedule
from dualcoll.schedules.order import describe_send, running_order
from dualcoll.simulation.options import Coupling, Mode, Options
from dualcoll.simulation.prepare import Prepared, prepare
from dualcoll.simulation.trace import Services, Trace

__all__ = ["simulate"]

Shorts = NDArray[np.int32]
Floats = NDArray[np.float64]

BINS = 128  # of time; even


def simulate(schedule: Schedule, options: Options | None = None) -> Trace:
    """Run a schedule on its fabric (docs/simulation.md).

    Args:
        schedule: the sends, with their routes. That it is right is for
            :func:`~dualcoll.schedules.validate.validate` to say; one that is not has a time all the same.
        options: what to assume; the alpha-beta model with cut-through by default.

    Raises:
        InputError: a schedule on no fabric, a send without a route, or sends that wait for each other.
    """
    options = options or Options()
    ready = prepare(schedule, options)
    if options.mode is Mode.FLUID:
        if np.any(schedule.multicast != NONE):
            raise InputError(
                "the fluid model knows no copies made by switches", where="multicast", hint="use alpha-beta"
            )
        return _fluid(schedule, options, ready)
    return _alpha_beta(schedule, options, ready)


def _alpha_beta(schedule: Schedule, options: Options, ready: Prepared) -> Trace:
    way = ready.way
    begin, end, taken = alpha_beta(*ready.dispatch, way.columns, ready.rows.size, options.cut_through)
    _check_finished(schedule, options, ready.sends["end"])
    place = way.places()
    stages = np.repeat(np.arange(way.place_ptr.size - 1), np.diff(way.place_ptr))
    services = Services(
        way.service_ptr,
        place,
        begin,
        end,
        ready.rows[way.row],
        stages - np.repeat(way.stage_ptr[:-1], np.diff(way.place_ptr[way.stage_ptr])),
        way.latency,
        taken[way.leader],
    )
    width = float(ready.sends["end"].max(initial=0.0)) / BINS
    own = services.own if services.server.size else slice(None)
    spent = booked(way.row[place[own]], begin[own], end[own], ready.rows.size, BINS, width)
    return _trace(schedule, options, ready, spent, width, services=services)


def _fluid(schedule: Schedule, options: Options, ready: Prepared) -> Trace:
    way = ready.way
    flows, uses, units, rows = _shared(schedule, options, ready)
    spent = np.zeros((ready.rows.size, BINS))
    busy = np.bincount(uses["row"], uses["load"] * np.repeat(way.size, np.diff(way.service_ptr)), ready.rows.size)
    width = max(way.tick, float(busy.max(initial=0.0))) / BINS  # at least, if it ends as soon as it can
    delay = np.append(ready.delay, 0.0)[schedule.route]
    width, held = fluid(*ready.dispatch, flows, uses, units, rows, delay, spent, width)
    _check_finished(schedule, options, ready.sends["end"])
    used = min(BINS, int(np.ceil(float(ready.sends["end"].max(initial=0.0)) / width)))
    held_by = np.append(ready.rows, -1)[held].astype(np.int32)
    return _trace(schedule, options, ready, spent[:, :used], width, held_by=held_by)


def _shared(schedule: Schedule, options: Options, ready: Prepared) -> tuple[Flows, Uses, Units, Rows]:
    """Sends as flows, and what they share."""
    way = ready.way
    flows: Flows = np.zeros(schedule.sends, FLOW)
    flows["unit"] = np.arange(schedule.sends)
    if options.coupling is Coupling.TREE:
        flows["unit"] = np.unique(schedule.channel, return_inverse=True)[1]
    flows["first_use"], flows["last_use"], flows["left"] = way.service_ptr[:-1], way.service_ptr[1:], way.size
    uses: Uses = np.zeros(int(way.service_ptr[-1]), USE)
    place = way.places()
    uses["unit"] = np.repeat(flows["unit"], np.diff(way.service_ptr))
    uses["row"], uses["load"] = way.row[place], way.cost[place]
    units: Units = np.zeros(int(flows["unit"].max(initial=-1)) + 1, UNIT)
    rows: Rows = np.zeros(ready.rows.size, ROW)
    for table in (units, rows):
        table["first"] = table["mark"] = NONE
    return flows, uses, units, rows


def _trace(
    schedule: Schedule,
    options: Options,
    ready: Prepared,
    spent: Floats,
    width: float,
    *,
    services: Services | None = None,
    held_by: Shorts | None = None,
) -> Trace:
    times = {name: ready.sends[name].copy() for name in ("start", "left", "arrived", "reduced", "end")}
    finish = np.zeros(schedule.ranks)
    for rank in (schedule.src, schedule.dst):
        np.maximum.at(finish, rank, times["end"])
    groups = schedule.contract.groups
    return Trace(
        options=options,
        kinds=frozenset((schedule.contract.collective, len(ranks)) for ranks in groups),
        size=schedule.size,
        place_from=ready.sends["behind"].copy(),
        **times,
        rank_finish=finish,
        rows=ready.rows,
        carried=ready.carried,
        busy=spent.sum(axis=1),
        bin_width=width,
        utilisation=spent / width if width > 0 else np.zeros((ready.rows.size, 0)),
        services=services,
        held_by=held_by,
    )


def _check_finished(schedule: Schedule, options: Options, end: Floats) -> None:
    stuck = np.count_nonzero(np.isnan(end))
    if stuck == 0:
        return
    try:
        running_order(schedule, options.depth)
    except CheckFailed as failure:
        problem = f"{stuck} of {schedule.sends} sends can never start; {failure.findings[0]}"
        raise InputError(problem, where="the schedule") from None
    assert options.in_order, "what has an order in which it can run is run"
    problem = f"{stuck} of {schedule.sends} sends never get their turn"
    owner = np.repeat(np.arange(schedule.sends), np.diff(schedule.depends_ptr))
    late = np.flatnonzero((schedule.depends > owner) & np.isnan(end[owner]) & np.isnan(end[schedule.depends]))
    if late.size:
        send, other = int(owner[late[0]]), int(schedule.depends[late[0]])
        why = f"{describe_send(schedule, send)} depends on send {other}, whose turn is later"
        raise InputError(f"{problem}: {why}", where="in_order", hint="number sends in an order in which they can run")
    why = f"channels of depth {options.depth} wait for sends whose turn is later to make room"
    raise InputError(f"{problem}: {why}", where="in_order", hint="leave out depth")

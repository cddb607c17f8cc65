"""Whether a schedule does what its contract promises, by symbolic execution (docs/semantics.md §10)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualcoll.certificates.findings import Findings
from dualcoll.collectives.contract import ALL, NOWHERE, Contract
from dualcoll.errors import CheckFailed, InputError
from dualcoll.kernels.hazards import slot_dependencies
from dualcoll.kernels.symbolic import DOUBLE, EMPTY, LOST, UNFOUNDED, contents, unordered
from dualcoll.schedules.ir import NONE, Schedule, previous_on_channel
from dualcoll.schedules.multicast import check_multicasts
from dualcoll.schedules.ops import Op
from dualcoll.schedules.order import describe_send, running_order
from dualcoll.schedules.route_check import check_routes
from dualcoll.units import format_size

__all__ = ["DEPTH", "validate"]

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]

DEPTH = 2  # places of a channel
LIMIT = 32  # findings of one kind worked out
MAX_BYTES = 2**33  # of the sets of contributions of one chunk's data
SEARCH = 1000  # steps of the search for an order, per send and dependency


def validate(schedule: Schedule, *, depth: int | None = DEPTH, one_per_round: bool = False) -> None:
    """Check everything that docs/semantics.md §10 lists.

    Args:
        schedule: the sends.
        depth: places of every channel (§5); None for as many as it takes.
        one_per_round: whether no link may carry two sends of one round (§8).

    Raises:
        InputError: a depth below 1, or too many ranks with too many slots for the same data.
        CheckFailed: one finding per violation, each with rank, send, chunk and the section that it violates.
    """
    if depth is not None and depth < 1:
        raise InputError(f"a channel of depth {depth} carries nothing", where="depth", hint="use 1 or more")
    findings = Findings()
    _check_slots(schedule, findings)
    check_routes(schedule, findings)
    _check_rounds(schedule, findings)
    if one_per_round:
        _check_links_per_round(schedule, findings)
    order = _order(schedule, depth, findings)
    check_multicasts(schedule, order, findings)
    if order is not None:
        _check_races(schedule, order, findings)
        if np.array_equal(schedule.contract.data[schedule.chunk], schedule.contract.data[schedule.into]):
            _check_contents(schedule, order, findings)
    if findings:
        raise findings.error()


def _order(schedule: Schedule, depth: int | None, findings: Findings) -> Shorts | None:
    """An order to execute in. A schedule that has one, but not with channels of that depth, still gets it."""
    order = None
    try:
        order = running_order(schedule)
        if depth is not None:
            running_order(schedule, depth)
    except CheckFailed as failure:
        findings.add(failure.findings[0])
    return order


def _check_slots(schedule: Schedule, findings: Findings) -> None:
    data, size = schedule.contract.data, schedule.chunk_size
    for send in np.flatnonzero(data[schedule.chunk] != data[schedule.into]).tolist():
        findings.add(f"{describe_send(schedule, send)}: the two chunks are not slots for the same data (§4)")
    over = size[schedule.chunk] > size[schedule.into]
    for send in np.flatnonzero(over).tolist():
        bytes_read, room = size[schedule.chunk[send]], size[schedule.into[send]]
        findings.add(f"{describe_send(schedule, send)}: {bytes_read} bytes overrun a slot of {room} (§2)")
    for chunk in np.flatnonzero((size != size[data]) & (schedule.contract.target != NOWHERE)).tolist():
        findings.add(f"chunk {chunk} has {size[chunk]} bytes, its data {size[data[chunk]]} (§2)")


def _check_rounds(schedule: Schedule, findings: Findings) -> None:
    row = np.repeat(np.arange(schedule.sends), np.diff(schedule.depends_ptr))
    own, other = schedule.round[row], schedule.round[schedule.depends]
    for i in np.flatnonzero((own != NONE) & (other != NONE) & (other >= own)).tolist():
        send, before = int(row[i]), int(schedule.depends[i])
        findings.add(
            f"{describe_send(schedule, send)}: it is in round {own[i]} and depends on send {before} of round {other[i]} (§8)"
        )


def _check_links_per_round(schedule: Schedule, findings: Findings) -> None:
    sends = np.flatnonzero((schedule.round != NONE) & (schedule.src != schedule.dst))
    if schedule.topology is None:
        places = schedule.src[sends].astype(np.int64) * schedule.ranks + schedule.dst[sends]
    else:
        sends = sends[schedule.route[sends] != NONE]
        begin, end = schedule.routes.ptr[schedule.route[sends]], schedule.routes.ptr[schedule.route[sends] + 1]
        hop = np.arange(int((end - begin).sum())) - np.repeat(np.cumsum(end - begin) - (end - begin), end - begin)
        places = schedule.routes.links[hop + np.repeat(begin, end - begin)].astype(np.int64)
        sends = np.repeat(sends, end - begin)
    rounds = schedule.round[sends]
    group = schedule.multicast[sends]
    order = np.lexsort((group, places, rounds))
    ahead, behind = order[:-1], order[1:]
    twice = (places[ahead] == places[behind]) & (rounds[ahead] == rounds[behind])
    twice &= (group[ahead] != group[behind]) | (group[ahead] == NONE)
    text = schedule.topology.describe_links() if schedule.topology and twice.any() else []
    for first, second in zip(ahead[twice].tolist(), behind[twice].tolist(), strict=True):
        link = f"link {text[places[first]]}" if text else "the link"
        findings.add(
            f"round {rounds[first]}: {link} carries both {describe_send(schedule, int(sends[first]))} "
            f"and {describe_send(schedule, int(sends[second]))} (§8)"
        )


def _check_races(schedule: Schedule, order: Shorts, findings: Findings) -> None:
    reads = schedule.src.astype(np.int64) * schedule.chunks + schedule.chunk
    writes = schedule.dst.astype(np.int64) * schedule.chunks + schedule.into
    used, slots = np.unique(np.concatenate([reads[order], writes[order]]), return_inverse=True)
    merges = schedule.op[order] == Op.REDUCE
    nothing = np.zeros(order.size + 1, np.int64), np.zeros(0, np.int32)
    needed_ptr, needed = slot_dependencies(slots[: order.size], slots[order.size :], merges, used.size, *nothing)
    pairs, settled = unordered(
        order,
        schedule.depends_ptr,
        schedule.depends,
        previous_on_channel(schedule),
        needed_ptr,
        needed,
        reads,
        writes,
        LIMIT,
        SEARCH * (schedule.sends + schedule.depends.size + 1),
    )
    for later, earlier in pairs.tolist():
        findings.add(_race(schedule, later, earlier, reads, writes, settled))


def _race(schedule: Schedule, later: int, earlier: int, reads: Ints, writes: Ints, settled: bool) -> str:
    if writes[earlier] == reads[later]:
        what, slot = "reads what {} writes", reads[later]
    elif writes[earlier] == writes[later]:
        what, slot = "writes what {} writes", writes[later]
    else:
        what, slot = "writes what {} reads", writes[later]
    rank, chunk = divmod(int(slot), schedule.chunks)
    conflict = what.format(describe_send(schedule, earlier))
    order = "and nothing orders them" if settled else "and the search for an order of the two was given up"
    return (
        f"{describe_send(schedule, later)} {conflict}, chunk {chunk} at rank {schedule.rank_name(rank)}, {order}: "
        "a data race (§6)"
    )


def _check_contents(schedule: Schedule, order: Shorts, findings: Findings) -> None:
    contract = schedule.contract
    origins = np.flatnonzero(contract.data == np.arange(contract.chunks))
    of_chunk = np.searchsorted(origins, contract.data)  # number of each chunk's data
    by_data = np.argsort(of_chunk, kind="stable")
    slot_ptr = np.searchsorted(of_chunk[by_data], np.arange(origins.size + 1))
    nth = np.empty(contract.chunks, np.int64)  # position among the chunks of the same data, the origin first
    nth[by_data] = np.arange(contract.chunks) - slot_ptr[of_chunk[by_data]]
    shift = nth[contract.data]  # the origin and the 0-th change places
    nth = np.where(nth == shift, 0, np.where(nth == 0, shift, nth))
    members = _members(contract)
    needed = int(np.diff(slot_ptr).max(initial=0)) * schedule.ranks * members.shape[1] * 8
    if needed > MAX_BYTES:
        problem = f"the sets of contributions take {format_size(needed)}"
        raise InputError(problem, hint=f"schedules that take up to {format_size(MAX_BYTES)} are validated")
    data = of_chunk[schedule.chunk[order]]
    grouped = np.argsort(data, kind="stable")
    promise_ptr, promises = _promises(contract, nth, of_chunk)
    errors, count = contents(
        np.searchsorted(data[grouped], np.arange(origins.size + 1)),
        order[grouped],
        nth[schedule.chunk] * schedule.ranks + schedule.src,
        nth[schedule.into] * schedule.ranks + schedule.dst,
        schedule.op == Op.REDUCE,
        contract.source[origins],
        members,
        contract.group[origins],
        slot_ptr * schedule.ranks,
        promise_ptr,
        promises,
        schedule.ranks,
        LIMIT,
    )
    for kind, send, number, slot, witness in errors.tolist():
        place, rank = divmod(slot, schedule.ranks)
        chunk = int(np.flatnonzero((of_chunk == number) & (nth == place))[0])
        findings.add(_content_finding(schedule, kind, send, chunk, rank, witness))
    for _ in range(count - len(errors)):
        findings.add("not worked out")  # beyond those that are shown


def _content_finding(schedule: Schedule, kind: int, send: int, chunk: int, rank: int, witness: int) -> str:
    if kind in (EMPTY, UNFOUNDED, DOUBLE):
        text = describe_send(schedule, send)
        src, dst = (schedule.rank_name(int(end[send])) for end in (schedule.src, schedule.dst))
        if kind == EMPTY:
            return f"{text}: rank {src} does not have chunk {schedule.chunk[send]} yet (§4)"
        if kind == UNFOUNDED:
            return f"{text}: it reduces into chunk {schedule.into[send]} of rank {dst}, which holds nothing (§4)"
        return f"{text}: the contribution of rank {schedule.rank_name(witness)} is counted twice (§4)"
    last = f"the last send into it is {describe_send(schedule, send)}" if send != NONE else "no send writes it"
    where = f"rank {schedule.rank_name(rank)}, chunk {chunk}: "
    if kind == LOST:
        return f"{where}the result is not where it was promised; {last} (§7)"
    return f"{where}the result lacks the contribution of rank {schedule.rank_name(witness)}; {last} (§7)"


def _promises(contract: Contract, nth: Ints, of_chunk: Ints) -> tuple[Ints, Ints]:
    """CSR of the slots that the contract promises, by data, numbered within it."""
    sizes = np.array([len(group) for group in contract.groups])
    promised = np.flatnonzero(contract.target != NOWHERE)
    promised = promised[np.argsort(of_chunk[promised], kind="stable")]
    everybody = contract.target[promised] == ALL
    count = np.where(everybody, sizes[contract.group[promised]], 1)
    chunk = np.repeat(promised, count)
    rank = contract.target[chunk].astype(np.int64)
    flat = np.array([member for group in contract.groups for member in group])
    start = (np.cumsum(sizes) - sizes)[contract.group[promised]]
    step = np.arange(chunk.size) - np.repeat(np.cumsum(count) - count, count)
    shared = np.repeat(everybody, count)
    rank[shared] = flat[(np.repeat(start, count) + step)[shared]]
    return np.searchsorted(of_chunk[chunk], np.arange(int(of_chunk.max(initial=-1)) + 2)), nth[
        chunk
    ] * contract.ranks + rank


def _members(contract: Contract) -> NDArray[np.uint64]:
    """The ranks of each group as bits, uint64 (G, W)."""
    words = np.zeros((len(contract.groups), (contract.ranks + 63) // 64), np.uint64)
    for i, group in enumerate(contract.groups):
        ranks = np.array(group)
        np.bitwise_or.at(words[i], ranks // 64, np.uint64(1) << (ranks % 64).astype(np.uint64))
    return words

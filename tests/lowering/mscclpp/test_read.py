"""Reading and writing MSCCL++ execution plan files."""

from __future__ import annotations

import json
from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualcoll.errors import InputError
from dualcoll.lowering.mscclpp import inspect, is_mscclpp, plan_from_bytes, plan_to_json
from tests.lowering.mscclpp.plans import SOUND, Data, op, read, reads


@pytest.mark.parametrize("name", SOUND)
def test_round_trip(name: str) -> None:
    """What is written is what was read."""
    plan = read(SOUND[name]())
    assert plan_from_bytes(plan_to_json(plan).encode(), "again") == plan


def test_recognised() -> None:
    """Plans are told from other JSON and from XML by their content."""
    assert is_mscclpp(json.dumps(reads()).encode())
    assert not is_mscclpp(b'{"format": "dualcoll.plan/1", "gpus": 1}')
    assert not is_mscclpp(b'<algo name="threadblocks"><gpus/></algo>')


def test_defaults() -> None:
    """Keys that the executor has defaults for may be absent."""
    plan = read(reads())
    assert (plan.threads, plan.alignment, plan.min_size, plan.max_size) == (1024, 16, 0, 2**64 - 1)


def ops(data: Data) -> list[Data]:
    return data["gpus"][1]["threadblocks"][0]["ops"]  # type: ignore[no-any-return]


def _rename(data: Data) -> None:
    ops(data)[3]["name"] = "rress"


def _number(data: Data) -> None:
    ops(data)[3]["src_buff"][1]["index"] = -1


def _operand(data: Data) -> None:
    del ops(data)[3]["src_buff"][0]["type"]


def _two(data: Data) -> None:
    ops(data)[3]["dst_buff"][0]["buffer_id"] = 0


def _missing(data: Data) -> None:
    del data["gpus"][1]["threadblocks"][0]["ops"]


def _type(data: Data) -> None:
    ops(data)[0]["channel_type"] = "sm"


def _pipeline(data: Data) -> None:
    ops(data)[2] = op("pipeline", ops=[op("nop")])


def _inner(data: Data) -> None:
    ops(data)[2] = op("pipeline", ops=[op("nop"), op("copy", "i0", "i1") | {"src_buff": [{"size": 1}]}])


def _old(data: Data) -> None:
    ops(data)[3]["o_cids"] = [{"id": 0, "off": 0}]


def _nobody(data: Data) -> None:
    data["gpus"] = []


BROKEN = {
    _rename: "plan.json: gpu 1, thread block 0, op 3: name: 'rress' is not an op of MSCCL++; did you mean rres?",
    _number: "plan.json: gpu 1, thread block 0, op 3: src_buff[1].index: -1 is not a whole number of 0 to 2**64 - 1",
    _operand: "plan.json: gpu 1, thread block 0, op 3: src_buff[0]: it has no buffer; give one of type, buffer_id and "
    "switch_channel_id",
    _two: "plan.json: gpu 1, thread block 0, op 3: dst_buff[0]: it has type and buffer_id; give one of type, buffer_id and "
    "switch_channel_id",
    _missing: "plan.json: gpu 1, thread block 0: ops is missing",
    _type: "plan.json: gpu 1, thread block 0, op 0: channel_type: 'sm' is not known; use one of memory, port, switch, none",
    _pipeline: "plan.json: gpu 1, thread block 0, op 2: iter_context is missing",
    _inner: "plan.json: gpu 1, thread block 0, op 2, inner op 1: src_buff[0]: index is missing",
    _old: "plan.json: it is a plan of MSCCL++'s older format, with o_cids; make it again with the mscclpp.language of the "
    "release that is to run it",
    _nobody: "plan.json: gpus: it has no GPUs",
}


@pytest.mark.parametrize("damage", BROKEN, ids=lambda damage: damage.__name__)
def test_refused(damage: Any) -> None:
    """What cannot be read is refused, with file, GPU, thread block, op and key."""
    data = reads()
    damage(data)
    with pytest.raises(InputError) as caught:
        read(data)
    assert str(caught.value) == BROKEN[damage]


def test_unknown_keys_are_told() -> None:
    """A key that the executor ignores is named, as it may be a slip; an older spelling of switch channels is read."""
    data = SOUND["switched"]()
    data["gpus"][0]["threadblocks"][0]["ops"][3]["tbg_inf"] = {}
    channel = data["gpus"][1]["channels"][1]
    channel["buff"] = channel.pop("buffer_type")
    assert inspect(read(data)).warnings == (
        "gpu 0, thread block 0, op 3: tbg_inf: the executor does not read this key",
        "switch channels have buff in the place of buffer_type, which present executors do not read",
    )


def _places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    keys = list(data) if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ()
    return [path] + [place for key in keys for place in _places(data[key], (*path, key))]


@given(st.data())
def test_damaged_files(draw: st.DataObject) -> None:
    """Whatever is put in the place of whatever, there is a plan and a report, or an error of ours."""
    data = deepcopy(SOUND[draw.draw(st.sampled_from(sorted(SOUND)))]())
    *path, last = draw.draw(st.sampled_from(_places(data)[1:]))
    here: Any = data
    for key in path:
        here = here[key]
    here[last] = draw.draw(
        st.sampled_from([None, -1, 0, 1, 2, 7, 40, 2**40, True, "i", "o", "s", "port", "", [], {}, [0, 9], "put"])
    )
    with suppress(InputError):
        inspect(read(data))

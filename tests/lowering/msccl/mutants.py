"""Valid programs with something changed, for properties."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from dualcoll.lowering.msccl.program import Buffer, Program, StepType
from tests.lowering.msccl.programs import VALID, altered


@st.composite
def mutants(draw: st.DrawFn) -> Program:
    """A valid program with up to two steps changed, or two steps of a block exchanged."""
    of = draw(st.sampled_from(list(VALID.values())))
    for _ in range(draw(st.integers(0, 2))):
        g, t, s, step = draw(st.sampled_from(list(of.steps())))
        field = draw(st.sampled_from(["srcoff", "dstoff", "srcbuf", "dstbuf", "wait", "hasdep", "type", "exchange"]))
        block = of.gpus[g].blocks[t]
        if field == "exchange":
            other = draw(st.integers(0, len(block.steps) - 1))
            of = altered(altered(of, (g, t, s), **_fields(block.steps[other])), (g, t, other), **_fields(step))
        elif field == "wait":
            depid = draw(st.integers(-1, len(of.gpus[g].blocks) - 1))
            deps = -1 if depid < 0 else draw(st.integers(0, len(of.gpus[g].blocks[depid].steps) - 1))
            of = altered(of, (g, t, s), depid=depid, deps=deps)
        else:
            values = {
                "hasdep": st.booleans(),
                "type": st.sampled_from([kind for kind in StepType if kind is not StepType.RESIDUAL_ADD]),
                "srcbuf": st.sampled_from(Buffer),
                "dstbuf": st.sampled_from(Buffer),
            }
            of = altered(of, (g, t, s), **{field: draw(values.get(field, st.integers(0, 3)))})
    return of


def _fields(step: Any) -> dict[str, Any]:
    return {name: getattr(step, name) for name in step.__dataclass_fields__}

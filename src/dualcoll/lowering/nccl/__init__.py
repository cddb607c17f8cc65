"""Files for NCCL and what is used beside it (docs/nccl-files.md). Each has a writer, a reader and a validator of its own.

    graph       ``graph_of_plan`` or ``graph_of_schedule``, then ``write_graph``; ``read_graph``, ``check_graph``
    topology    ``write_topology``; read by the importer of :mod:`dualcoll.topology`; ``check_topology``
    tuner       ``tuner_rows``, then ``write_tuner``; ``read_tuner``, ``check_tuner``
    alltoallv   ``plan_matrix``, then ``write_alltoallv``; ``read_alltoallv``, ``check_alltoallv``; ``alltoallv_flags``
    ranks       ``rank_hosts``, then ``write_rank_order``; ``read_rank_order``, ``check_rank_order``
    Chakra      ``write_chakra`` for a schedule; ``read_chakra``, ``check_chakra``

Writers raise :class:`~dualcoll.errors.InputError` where the format cannot say it; validators return a sentence for each fault.
"""

from dualcoll.lowering.nccl.alltoallv import (
    alltoallv_flags,
    check_alltoallv,
    plan_matrix,
    read_alltoallv,
    write_alltoallv,
)
from dualcoll.lowering.nccl.rank_order import check_rank_order, rank_hosts, read_rank_order, write_rank_order
from dualcoll.lowering.nccl.tuner import TunerRow, check_tuner, read_tuner, tuner_rows, write_tuner

__all__ = [
    "TunerRow",
    "alltoallv_flags",
    "check_alltoallv",
    "check_rank_order",
    "check_tuner",
    "plan_matrix",
    "rank_hosts",
    "read_alltoallv",
    "read_rank_order",
    "read_tuner",
    "tuner_rows",
    "write_alltoallv",
    "write_rank_order",
    "write_tuner",
]

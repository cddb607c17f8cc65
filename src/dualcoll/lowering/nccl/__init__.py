"""Files for NCCL and what is used beside it (docs/nccl-files.md). Each has a writer, a reader and a validator of its own.

    graph       ``graph_of_plan`` or ``graph_of_schedule``, then ``write_graph``; ``read_graph``, ``check_graph``
    topology    ``write_topology``; read by the importer of :mod:`dualcoll.topology`; ``check_topology``
    tuner       ``tuner_rows``, then ``write_tuner``; ``read_tuner``, ``check_tuner``
    alltoallv   ``plan_matrix``, then ``write_alltoallv``; ``read_alltoallv``, ``check_alltoallv``; ``alltoallv_flags``
    ranks       ``rank_hosts``, then ``write_rank_order``; ``read_rank_order``, ``check_rank_order``
    Chakra      ``trace_of_schedule``, then ``write_chakra``; ``read_chakra``, ``check_chakra``

Writers raise :class:`~dualcoll.errors.InputError` where the format cannot say it; validators return a sentence for each fault.
"""

from dualcoll.lowering.nccl.alltoallv import (
    alltoallv_flags,
    check_alltoallv,
    plan_matrix,
    read_alltoallv,
    write_alltoallv,
)
from dualcoll.lowering.nccl.chakra import TraceNode, check_chakra, read_chakra, trace_of_schedule, write_chakra
from dualcoll.lowering.nccl.graph import Graph, Shape, read_graph, write_graph
from dualcoll.lowering.nccl.graph_check import check_graph
from dualcoll.lowering.nccl.rank_order import check_rank_order, rank_hosts, read_rank_order, write_rank_order
from dualcoll.lowering.nccl.to_graph import graph_of_plan, graph_of_schedule
from dualcoll.lowering.nccl.topology import topology_text, write_topology
from dualcoll.lowering.nccl.topology_check import check_topology
from dualcoll.lowering.nccl.tuner import TunerRow, check_tuner, read_tuner, tuner_rows, write_tuner

__all__ = [
    "Graph",
    "Shape",
    "TraceNode",
    "TunerRow",
    "alltoallv_flags",
    "check_alltoallv",
    "check_chakra",
    "check_graph",
    "check_rank_order",
    "check_topology",
    "check_tuner",
    "graph_of_plan",
    "graph_of_schedule",
    "plan_matrix",
    "rank_hosts",
    "read_alltoallv",
    "read_chakra",
    "read_graph",
    "read_rank_order",
    "read_tuner",
    "topology_text",
    "trace_of_schedule",
    "tuner_rows",
    "write_alltoallv",
    "write_chakra",
    "write_graph",
    "write_rank_order",
    "write_topology",
    "write_tuner",
]

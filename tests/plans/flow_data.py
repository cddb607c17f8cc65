"""A file of flows by hand."""

from __future__ import annotations

from typing import Any


def example() -> dict[str, Any]:
    """g0 gathers from g1 and g2 and sends the result to g1, which passes it on to g2, sprayed over both cables."""
    cables = [("g0", "s", "40GB/s", 1), ("g1", "s", "40GB/s", 1), ("g2", "s", "20GB/s", 2)]
    return {
        "format": "dualcoll.flows/1",
        "size": 1000,
        "ranks": ["g0", "g1", "g2"],
        "topology": {
            "format": "dualcoll.topology/1",
            "nodes": [{"name": f"g{i}", "kind": "gpu"} for i in range(3)] + [{"name": "s", "kind": "switch"}],
            "links": [{"from": a, "to": b, "bandwidth": w, "count": n} for a, b, w, n in cables],
        },
        "shards": [
            {
                "name": "all",
                "weight": 1,
                "flows": [
                    {"id": "a", "from": "g1", "to": "g0", "rate": 2e9, "route": ["g1", "s", "g0"]},
                    {"id": "b", "from": "g2", "to": "g0", "rate": 1e9, "route": ["g2", ["s", 1], "g0"]},
                    {
                        "id": "c",
                        "from": "g0",
                        "to": "g1",
                        "rate": 3e9,
                        "route": ["g0", "s", "g1"],
                        "depends": ["a", "b"],
                    },
                    {
                        "id": "d",
                        "from": "g1",
                        "to": "g2",
                        "rate": 1e9,
                        "depends": ["c"],
                        "own": False,
                        "spray": [
                            {"link": ["g1", "s"], "share": 1},
                            {"link": ["s", "g2"], "share": 0.75},
                            {"link": ["s", "g2", 1], "share": 0.25},
                        ],
                    },
                ],
            }
        ],
    }

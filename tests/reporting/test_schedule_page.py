"""The page of a schedule."""

import re
from dataclasses import replace
from pathlib import Path

from plotly.offline import get_plotlyjs

from dualcoll.classical.registry import build
from dualcoll.classical.ring import ring_all_reduce
from dualcoll.reporting.schedule_page import schedule_page
from dualcoll.simulation import simulate
from dualcoll.topology.catalog import catalog

HOSTILE = "<script>alert(1)</script>\"'&"


def test_what_a_page_has(tmp_path: Path) -> None:
    """Facts, timeline, times and route map of a simulated schedule, in one file that loads nothing; names are text."""
    topology = catalog("rail:2x2")
    nodes = tuple(replace(node, name=f"{HOSTILE}{i}") for i, node in enumerate(topology.nodes))
    hostile = replace(topology, nodes=nodes, name=HOSTILE)
    schedule = build("balanced", "allreduce", hostile, hostile.ranks, 4096)
    schedule_page(schedule, tmp_path / "page.html", simulate(schedule))
    text = (tmp_path / "page.html").read_text(encoding="utf-8").replace(get_plotlyjs(), "")
    assert re.findall("<h[12]>(.*?)</h[12]>", text) == [
        "AllReduce of 4 ranks (balanced)",
        "Who sends what",
        "When",
        "Over which links",
    ]
    assert "<span>rounds</span>" in text
    assert "none: no link carries two edges in one round" in text
    assert HOSTILE not in text
    assert not re.search(r"https?:|src=|href=|<link|<img|@import|url\(", text)


def test_without_fabric_or_run(tmp_path: Path) -> None:
    """A schedule by itself has its timeline alone."""
    schedule_page(ring_all_reduce(3, 300), tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8").replace(get_plotlyjs(), "")
    assert re.findall("<h[12]>(.*?)</h[12]>", text) == ["AllReduce of 3 ranks (ring)", "Who sends what"]

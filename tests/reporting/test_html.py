import re
from dataclasses import replace
from pathlib import Path

import pytest
from plotly.offline import get_plotlyjs

from dualcoll._api import plan
from dualcoll.errors import InputError
from dualcoll.plans.model import Alternative, Plan
from dualcoll.reporting.html import report, topology_page
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Topology
from tests.reporting.plans import STAR, many_paths, mixed

HOSTILE = "<script>alert(1)</script>\"'&"


def hostile(topology: Topology) -> Topology:
    """The same fabric with markup in every text that a user can give."""
    nodes = tuple(
        replace(node, name=f"{HOSTILE}{i}", box=node.box and HOSTILE + node.box)
        for i, node in enumerate(topology.nodes)
    )
    links = tuple(replace(link, source=HOSTILE) for link in topology.links)
    return Topology(nodes, links, (), HOSTILE, (HOSTILE,))


@pytest.fixture(scope="module")
def made() -> Plan:
    """A plan of two boxes on two rails whose every name is hostile."""
    return plan(hostile(catalog("rail:2x2")))


def page(path: Path) -> str:
    """The page without plotly's own code."""
    text = path.read_text(encoding="utf-8")
    assert get_plotlyjs() in text
    return text.replace(get_plotlyjs(), "")


def test_a_report_loads_nothing_from_outside(made: Plan, tmp_path: Path) -> None:
    """The page works offline: no address, no linked script, style, image or font."""
    report(made, tmp_path / "plan.html")
    text = page(tmp_path / "plan.html")
    assert not re.search(r"https?:|//[a-z]+\.|src=|href=|<link|<img|<iframe|@import|url\(", text)


def test_figures_cannot_be_sent_elsewhere(made: Plan, tmp_path: Path) -> None:
    """The buttons of the figures are those listed; plotly's own upload button is not among them."""
    report(made, tmp_path / "plan.html")
    text = page(tmp_path / "plan.html")
    assert (
        re.findall(r'"modeBarButtons": ?(\[\[.*?\]\])', text)
        == ['[["toImage", "zoom2d", "pan2d", "resetScale2d"]]'] * 4
    )


def test_a_report_escapes_what_users_named(made: Plan, tmp_path: Path) -> None:
    """Hostile names appear as text and never as markup."""
    report(made, tmp_path / "plan.html")
    text = page(tmp_path / "plan.html")
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#x27;&amp;" in text


def test_a_report_says_everything(made: Plan, tmp_path: Path) -> None:
    """Result, bottleneck, four figures, the plan's lines and the fabric's assumptions are on the page."""
    plain = plan(replace(catalog("rail:2x2"), notes=("PCIe generation assumed",)), size="1GiB")
    report(plain, tmp_path / "plan.html")
    text = page(tmp_path / "plan.html")
    assert re.findall(r"<h2>(.*?)</h2>", text) == [
        "What limits it",
        "Link load",
        f"The {len(plain.trees)} trees",
        "Convergence",
        "The plan in full",
        "The fabric",
    ]
    assert text.count('class="plotly-graph-div"') == 4
    assert re.search(r"<h1>AllReduce of 4 ranks: [\d.]+ GB/s, at most [\d.]+ GB/s \(gap .*\)</h1>", text)
    assert plain.bottleneck[0].text in text
    assert "PCIe generation assumed" in text
    assert "1 GiB" in text


def test_a_page_of_groups_has_their_rates(tmp_path: Path) -> None:
    """With several groups there is a picture of their rates, and no busbw of things that differ."""
    made = mixed()
    report(made, tmp_path / "plan.html")
    text = page(tmp_path / "plan.html")
    assert re.findall(r"<h2>(.*?)</h2>", text)[:4] == [
        "What limits it",
        "Groups",
        "Link load",
        f"The {len(made.trees)} trees and paths",
    ]
    assert "<h1>Mix of 2 collectives on 4 ranks: 10 GB/s" in text
    assert re.findall(r"<b>([^<]*)</b><span>algbw(.*?)</span>", text) == [("10 GB/s", ", of the largest message")]
    assert "busbw" not in text
    assert "pair: AllReduce of 2 ranks, 1 MiB at 3.33333 GB/s, 314.6 us" in text


def test_other_ways_and_the_cut_are_on_the_page(made: Plan, tmp_path: Path) -> None:
    """Ways beside the plan are bars of the bound, escaped; the narrowest cut is in words."""
    report(replace(made, alternatives=(Alternative(made.bound / 2, HOSTILE),)), tmp_path / "plan.html")
    text = page(tmp_path / "plan.html")
    assert re.findall(r"<h2>(.*?)</h2>", text)[1] == "Beside it"
    assert re.findall(r'class="bar" style="width:(\d+)px"', text)[-2:] == ["60", "30"]
    assert "<script>alert" not in text
    assert re.search(r"The narrowest cut: the sum of .*: at most [\d.]+ GB/s, tight\.", text)


def test_a_page_of_thousands_of_paths_stays_small(tmp_path: Path) -> None:
    """Of 8,064 paths 24 are drawn, and the page says so."""
    report(many_paths(64), tmp_path / "plan.html")
    text = page(tmp_path / "plan.html")
    assert "<h2>24 of 8064 paths, the fastest of each demand first</h2>" in text
    assert len(text) < 3_000_000


def test_of_one_demand_the_fastest_trees_are_shown(tmp_path: Path) -> None:
    """More trees of an AllReduce than have room: the fastest, and how many there are."""
    made = plan(STAR)
    trees = tuple(replace(made.trees[0], rate=1e8 + t) for t in range(30))
    report(replace(made, trees=trees), tmp_path / "plan.html")
    text = page(tmp_path / "plan.html")
    assert "<h2>The 24 fastest of 30 trees</h2>" in text
    assert "Tree 29 of 30" in text
    assert "Tree 5 of 30" not in text


def test_a_topology_page_is_safe_and_complete(tmp_path: Path) -> None:
    """The picture, the links and the notes, with the same care for names and addresses."""
    topology_page(hostile(catalog("rail:2x2")), tmp_path / "fabric.html")
    text = page(tmp_path / "fabric.html")
    assert "<script>alert" not in text
    assert not re.search(r"https?:|src=|href=", text)
    assert text.count('class="plotly-graph-div"') == 1
    assert re.findall(r"<h2>(.*?)</h2>", text) == ["Picture", "The fabric"]


def test_a_page_that_cannot_be_written_says_why(tmp_path: Path) -> None:
    """A missing folder is named, and nothing is left behind."""
    target = tmp_path / "missing" / "fabric.html"
    with pytest.raises(InputError) as caught:
        topology_page(catalog("ring:3"), target)
    assert str(caught.value) == (
        f"{target}: it cannot be written: No such file or directory; make the folder {target.parent} first"
    )
    assert list(tmp_path.iterdir()) == []

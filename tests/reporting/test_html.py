import re
from dataclasses import replace
from pathlib import Path

import pytest
from plotly.offline import get_plotlyjs

from dualcoll._api import plan
from dualcoll.errors import InputError
from dualcoll.plans.model import Plan
from dualcoll.reporting.html import report, topology_page
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Topology

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
        f"The {len(plain.trees)} fastest trees or paths of {len(plain.trees)}",
        "Convergence",
        "The plan in full",
        "The fabric",
    ]
    assert text.count('class="plotly-graph-div"') == 4
    assert re.search(r"<h1>AllReduce of 4 ranks: [\d.]+ GB/s, at most [\d.]+ GB/s \(gap .*\)</h1>", text)
    assert plain.bottleneck[0].text in text
    assert "PCIe generation assumed" in text
    assert "1 GiB" in text


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

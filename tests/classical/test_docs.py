"""The page about classical algorithms says what is so."""

import re
from pathlib import Path

import pytest

from dualcoll.classical.costs import closed_form
from dualcoll.classical.counts import counts
from dualcoll.classical.place import Place, place_on
from dualcoll.classical.registry import ALGORITHMS, build
from dualcoll.simulation import simulate
from dualcoll.topology.catalog import catalog
from tests.classical.samples import boxes_of, divisible

TEXT = (Path(__file__).parents[2] / "docs/classical.md").read_text()
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in TEXT.splitlines() if line.startswith("| `")]


def test_every_algorithm_is_described() -> None:
    """The table of names has all, and only, the algorithms that there are."""
    described = [name for row in ROWS if len(row) == 4 for name in re.findall(r"`(.*?)`", row[0])]
    assert sorted(described) == sorted(ALGORITHMS)


@pytest.mark.parametrize("row", [row for row in ROWS if row[-1].endswith("GB/s")], ids=lambda row: row[0])
def test_the_comparison_is_what_is_simulated(row: list[str]) -> None:
    """Rounds, bytes and simulated rate of each algorithm on 4 boxes of 8 are those of the table."""
    topology, size = catalog("rail:4x8"), 2**28
    place = place_on(topology, topology.ranks, size)
    schedule = build(row[0].strip("`"), "allreduce", topology, topology.ranks, size)
    found = counts(schedule, place.boxes).busiest
    assert found.across is not None
    assert found.box is not None
    parts = [f"{float(part) / size:.3f} N" for part in (found.sent, found.across, found.box)]
    assert row[1:] == [str(found.rounds), *parts, f"{size / simulate(schedule).finish / 1e9:.1f} GB/s"]


@pytest.mark.parametrize(
    "row", [row for row in ROWS if len(row) == 6 and not row[-1].endswith("GB/s")], ids=lambda row: row[0]
)
def test_the_formulas_are_those_that_agree_with_counts(row: list[str]) -> None:
    """Each line of the table gives the numbers of the closed form, for P = 16 in 4 boxes of 4, or alone."""
    name = row[0].split("`")[1]
    served = [word for word in ALGORITHMS[name] if word in row[0].lower()] or ["allreduce"]
    alone = "no boxes" in row[0]
    place = divisible(Place(boxes_of([16] if alone else [4] * 4), 1))
    form = closed_form(name, served[0], place)
    wanted = [form.sent, form.read, form.written, form.reduced]
    columns = [row[2] if text == "the same" else text for text in row[2:]]
    assert [number(text, place, place.size) for text in columns] == pytest.approx([float(value) for value in wanted])
    assert number(row[1], place, 1) == form.rounds


@pytest.mark.parametrize("row", [row for row in ROWS if len(row) == 3], ids=lambda row: row[0])
def test_the_formulas_across_the_network(row: list[str]) -> None:
    """The same of bytes between boxes."""
    for name in re.findall(r"`(.*?)`", row[0]):
        collective = "alltoall" if "alltoall" in ALGORITHMS[name] else "allreduce"
        place = divisible(Place(boxes_of([4] * 4), 1))
        form = closed_form(name, collective, place)
        assert form.across is not None
        assert form.box is not None
        texts = row[1].split(" by the leader")[0], row[2]
        assert [number(text, place, place.size) for text in texts] == pytest.approx(
            [float(form.across), float(form.box)]
        )


def number(text: str, place: Place, size: int) -> float:
    """A formula of the page, worked out."""
    P, Q, G = place.ranks, len(place.boxes), len(place.boxes[-1]) if len(place.boxes) > 1 else 1
    values = {"P": P, "Q": Q, "G": G, "N": size, "p": place.pieces, "L": 4, "b": 32}
    text = (
        text.replace("⌈log P′⌉", "(4)")
        .replace("⌈log Q′⌉", "(2)")
        .replace("log P", "(4)")
        .replace("−", "-")
        .replace("·", "*")
    )
    text = re.sub(r"(?<=[\dA-Zb)])\s*(?=[A-Zb(])", "*", text)
    return float(eval(text, {}, values))


def test_the_example_runs() -> None:
    """The code of the page does what it says."""
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    values: dict[str, object] = {}
    exec(code, values)
    assert str(values["text"]).startswith("AllReduce of 32 ranks (balanced); 8 of 32 ranks and 4 of 20 rounds shown")
    assert ("contention", "none: no link carries two edges in one round") in values["lines"]  # type: ignore[operator]

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dualcoll.collectives.demand_file import read_demand
from dualcoll.errors import InputError

SHAPE = "give one row and one column for each rank"
BYTES = 'write bytes, such as "1048576" or "4MiB"'


def read(tmp_path: Path, text: str, file: str = "demand.txt") -> tuple[list[list[int]], tuple[str, ...]]:
    path = tmp_path / file
    path.write_text(text)
    demand = read_demand(path)
    return demand.cells.tolist(), demand.names


@pytest.mark.parametrize(
    "text",
    [
        "0 100\n200 50\n",
        "  0\t100 \n\n200 5e1\r\n",
        "\ufeff0, 100\n200, 50",
        "0,100,\n200,50.0,\n,,\n",
        '"0","100"\n200,50',
    ],
)
def test_a_plain_matrix(tmp_path: Path, text: str) -> None:
    """Blanks or commas between the cells, blank lines, a comma that ends every line, a byte order mark, quotes."""
    assert read(tmp_path, text) == ([[0, 100], [200, 50]], ())


@pytest.mark.parametrize(
    ("cell", "nbytes"),
    [
        ("7", 7),
        ("1e3", 1000),
        ("+8", 8),
        ("4MiB", 4 * 2**20),
        ("4M", 4 * 2**20),
        ("4MB", 4_000_000),
        ("1.5KiB", 1536),
        ("12B", 12),
        ("0MiB", 0),
        ("0.0", 0),
        (str(2**61), 2**61),
    ],
)
def test_cells_with_and_without_a_unit(tmp_path: Path, cell: str, nbytes: int) -> None:
    """A bare number is bytes; units are read as everywhere else."""
    assert read(tmp_path, f"0 {cell}\n1 0\n") == ([[0, nbytes], [1, 0]], ())


@pytest.mark.parametrize(
    "text",
    [
        ",g0,g1\ng0,5,6\ng1,7,8\n",
        "from,g0,g1\ng0,5,6\ng1,7,8\n",
        "from,g1,g0\ng0,6,5\ng1,8,7\n",
        "g0 g1\ng0 5 6\ng1 7 8\n",
        "g0,g1\n5,6\n7,8\n",
        "g0,5,6\ng1,7,8\n",
        "g0 5 6\ng1 7 8\n",
    ],
)
def test_ranks_by_name(tmp_path: Path, text: str) -> None:
    """In the first row, the first column or both, with a corner or without; columns may stand in another order."""
    assert read(tmp_path, text, "demand.csv") == ([[5, 6], [7, 8]], ("g0", "g1"))


@pytest.mark.parametrize("corner", ["", "rank"])
def test_ranks_by_number(tmp_path: Path, corner: str) -> None:
    """Where a corner says that the first row and column are no data."""
    assert read(tmp_path, f"{corner},3,4\n3,5,6\n4,7,8\n") == ([[5, 6], [7, 8]], ("3", "4"))


def test_expert_routing(tmp_path: Path) -> None:
    """By suffix, or by how it begins; the tokens are counted."""
    path = tmp_path / "moe.yaml"
    path.write_text("{hidden: 2, dtype: fp16, tokens: [[1, 2], [3, 4]], ranks: [g0, g1]}")
    (tmp_path / "moe").write_bytes(path.read_bytes())
    for file in (path, tmp_path / "moe"):
        demand = read_demand(file)
        assert (demand.cells.tolist(), demand.names) == ([[4, 8], [12, 16]], ("g0", "g1"))
        assert demand.tokens is not None
        assert demand.tokens.routed == 10


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": it is empty"),
        (" \n\n", ": it is empty"),
        (",,\n,\n", f": it has no cells; {SHAPE}"),
        ("1 2 3\n4 5 6\n", f": a matrix of 2 by 3 is not square; {SHAPE}"),
        ("1 2\n3 4\n5 6\n", f": a matrix of 3 by 2 is not square; {SHAPE}"),
        ("1 2\n3\n", f":2: a row of length 1, where line 1 has 2 cells; {SHAPE}"),
        ("g0,g1\n", f":1: 'g1' is not a number of bytes; {BYTES}"),
        ("0 1\n-5 0\n", ":2: '-5' is negative; bytes are 0 or more"),
        ("0 1\nnan 0\n", f":2: 'nan' is not a number of bytes; {BYTES}"),
        ("0 inf\n1 0\n", f":1: 'inf' is not a number of bytes; {BYTES}"),
        ("0 1\n\n5x 0\n", f":3: '5x' is not a number of bytes; {BYTES}"),
        ("0 4\n1 MiB\n", f":2: 'MiB' is not a number of bytes; {BYTES}"),
        (f"0 {'9' * 70}\n1 0\n", f":1: '{'9' * 57}...' is not a number of bytes; {BYTES}"),
        ("0 1e300\n1 0\n", ":1: '1e300' is absurdly large; a rank sends at most 2**62 bytes"),
        ("0 9e9TiB\n1 0\n", f":1: size '9e9TiB' is out of range; {BYTES}"),
        (
            "0 0.25\n1 0\n",
            ":1: '0.25' is not a whole number of bytes; cells are bytes; with a unit one may be broken, such as \"1.5MiB\"",
        ),
        (
            "0 0\n0 0\n",
            ": nothing to send: no rank has bytes for another; give a rank bytes for another, or leave the collective out",
        ),
        ("5\n", f": a matrix of 1 by 1 moves nothing; {SHAPE}"),
        (",g0,g1\ng0,1,2\ng2,3,4\n", ":1: 'g1' names a column but no row; name rows and columns alike"),
        (",g0,g0\ng0,1,2\ng1,3,4\n", ":1: 'g0' names two; name rows and columns alike"),
        (",g0,g0\ng0,1,2\ng0,3,4\n", ":1: rank g0 is named twice"),
        (",g0,g1\ng0,1,2\ng1,3\n", f":3: a row of length 1, where line 2 has 2 cells; {SHAPE}"),
        ('0,"1\n1,0\n', ":2: the CSV is broken: unexpected end of data"),
        ("0 1\n\udcff 0\n", ":2: it is not UTF-8 text"),
    ],
)
def test_what_is_no_matrix_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """With the file, the line where there is one, and the cell."""
    path = tmp_path / "demand"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError) as caught:
        read_demand(path)
    assert str(caught.value) == f"{path}{message}"


def test_a_missing_file(tmp_path: Path) -> None:
    """As any other input."""
    with pytest.raises(InputError) as caught:
        read_demand(tmp_path / "none.csv")
    assert str(caught.value) == f"{tmp_path / 'none.csv'}: it cannot be read: No such file or directory"


@given(st.integers(2, 5).flatmap(lambda n: st.lists(st.integers(0, 2**59), min_size=n * n, max_size=n * n)), st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_is_read(tmp_path: Path, cells: list[int], data: st.DataObject) -> None:
    """Whatever separates the cells, and with names or without."""
    n = round(len(cells) ** 0.5)
    table = np.array(cells).reshape(n, n)
    table[0, 1] += 1
    between = data.draw(st.sampled_from([" ", "\t", ",", ", "]))
    rows = [list(map(str, row)) for row in table.tolist()]
    names = [f"gpu{i}" for i in range(n)]
    head, side = data.draw(st.booleans()), data.draw(st.booleans())
    if side:
        rows = [[name, *row] for name, row in zip(names, rows, strict=True)]
    if head:
        rows = [names if not side else ["from", *names], *rows]
    text = "\n".join(between.join(row) for row in rows)
    assert read(tmp_path, text) == (table.tolist(), tuple(names) if head or side else ())


@given(st.text(alphabet='0123456789 ,\n.-eg"{}[]:', max_size=40) | st.binary(max_size=40))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_read_or_refused(tmp_path: Path, content: str | bytes) -> None:
    """Nothing but an input error comes of it."""
    path = tmp_path / "demand"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    try:
        demand = read_demand(path)
    except InputError as error:
        place = error.where
    else:
        place = demand.where
        assert demand.size > 0
    assert place.startswith(str(path))


def test_a_file_of_odd_blanks_has_no_cells(tmp_path: Path) -> None:
    """Characters that count as blanks but not as ends of lines."""
    path = tmp_path / "odd.txt"
    path.write_bytes(b"\x1c")
    with pytest.raises(InputError) as caught:
        read_demand(path)
    assert caught.value.problem == "it has no cells"

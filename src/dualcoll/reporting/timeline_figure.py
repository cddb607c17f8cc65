"""The rank timeline as a picture: chunks fill up from column to column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dualcoll.collectives.catalogue import title
from dualcoll.reporting.drawing import INK, LETTER, dress, escaped
from dualcoll.reporting.timeline import Cell, Timeline
from dualcoll.reporting.timeline_text import cell_lines
from dualcoll.schedules.ops import Op
from dualcoll.units import format_size

__all__ = ["COLORS", "timeline_figure"]

COLORS = {Op.REDUCE: "#d55e00", Op.COPY: "#0072b2"}
WORDS = {Op.REDUCE: "just merged into", Op.COPY: "just stored"}
EMPTY, WHOLE = "#ffffff", "#009e73"
OWN, SHADES = "#e8ecf0", ("#c9d3dc", "#aab9c6")  # of up to and more than half of the contributions
GRID = "#d5dbe1"
SQUARE = 24  # px
FONT = 11  # px
LINES = 4  # of words in a cell
HEAD = 28  # px of the columns' names


def timeline_figure(line: Timeline) -> go.Figure:
    """Ranks as rows: in each cell what is sent and received in words, and below it the rank's chunks after the column.

    A chunk is a square with its number: white where the rank holds nothing of it, grey with a partial result, green when
    whole; a coloured edge tells what has just been merged or taken over. Of more than 16 chunks a bar tells how many are whole.
    """
    grid = _Grid(line)
    figure = go.Figure()
    for k, name in enumerate(("before", *line.columns)):
        figure.add_annotation(**_label(grid.x[k] + 8, grid.height + 14, f"<b>{name}</b>", "left"))
    for row, rank in enumerate(line.ranks):
        named = f"R{rank}" if line.schedule.topology is None else f"R{rank} {line.schedule.rank_name(rank)}"
        figure.add_annotation(**_label(-12, grid.middle(row), f"<b>{escaped(named, 24)}</b>", "right"))
    _add_cells(figure, grid)
    if grid.chunks:
        _add_squares(figure, grid)
    else:
        _add_bars(figure, grid)
    schedule = line.schedule
    what = f"{title(schedule.contract.collective)} of {schedule.ranks} ranks{f' ({schedule.name})' if schedule.name else ''}"
    hidden = ""
    if len(line.ranks) < schedule.ranks or len(line.columns) < line.all_columns:
        hidden = (
            f"; {len(line.ranks)} of {schedule.ranks} ranks, {len(line.columns)} of {line.all_columns} {line.word}s"
        )
    sizes = sorted({int(size) for size in schedule.chunk_size})
    each = format_size(sizes[-1]) if len(set(sizes)) == 1 else f"up to {format_size(sizes[-1])}" if sizes else "nothing"
    dress(figure, escaped(what), f"{schedule.chunks} chunks of {each}{hidden}")
    width, height = grid.width + grid.left, grid.height + HEAD
    margin = {"l": 20, "r": 24, "t": 66 + height // 40, "b": 50}
    figure.update_layout(
        width=width + margin["l"] + margin["r"],
        height=height + margin["t"] + margin["b"],
        margin=margin,
        legend={"y": -8 / height, "x": grid.left / width},
    )
    figure.update_xaxes(visible=False, range=[-grid.left, grid.width])
    figure.update_yaxes(visible=False, range=[0, height])
    return figure


class _Grid:
    """Where cells stand, in px: column 0 is the state before."""

    def __init__(self, line: Timeline) -> None:
        self.line = line
        chunks = line.schedule.chunks
        self.chunks = chunks if line.before and len(line.before[0].held) == chunks else 0
        self.cells = [(before, *row) for before, row in zip(line.before, line.cells, strict=True)]
        self.words = [[cell_lines(cell, line.needed, LINES) for cell in row] for row in self.cells]
        for row in self.words:
            for lines in row:
                if lines and lines[-1].startswith("owns"):
                    lines.pop()  # the squares or the bar tell
        tall = max([len(lines) for row in self.words for lines in row], default=0)
        self.cell_height = 16 * tall + SQUARE + 22
        least = SQUARE * max(self.chunks, 3)
        letters = [
            max([len(name) + 1, *(len(line) for row in self.words for line in row[k])])
            for k, name in enumerate(("before", *self.line.columns))
        ]
        wide = [max(least, round(LETTER * FONT * count)) + 20 for count in letters]
        self.x = [0, *np.cumsum(wide).tolist()]
        self.width, self.height = self.x[-1], self.cell_height * len(line.ranks)
        names = [len(line.schedule.rank_name(rank)) for rank in line.ranks]
        self.left = 36 if line.schedule.topology is None else round(8 * min(24, max(names, default=0) + 4)) + 16

    def middle(self, row: int) -> float:
        """Height of the row's middle."""
        return self.top(row) - self.cell_height / 2

    def bottom(self, row: int) -> float:
        """Height of the middle of its squares or bar."""
        return self.top(row) - self.cell_height + SQUARE / 2 + 8

    def top(self, row: int) -> float:
        """Height of its upper edge."""
        return self.height - row * self.cell_height


def _add_cells(figure: go.Figure, grid: _Grid) -> None:
    """Rules between cells, and what happens in each in words."""
    rules = [(0, grid.width, y, y) for y in range(0, grid.height + 1, grid.cell_height)]
    rules += [(x, x, 0, grid.height) for x in grid.x]
    for x0, x1, y0, y1 in rules:
        figure.add_shape(type="line", x0=x0, x1=x1, y0=y0, y1=y1, line={"color": GRID, "width": 1}, layer="below")
    for row, cells in enumerate(grid.words):
        for k, lines in enumerate(cells):
            if lines:
                text = "<br>".join(_colored(escaped(text, 80)) for text in lines)
                spot = _label(grid.x[k] + 8, grid.top(row) - 6, text, "left")
                figure.add_annotation(**spot | {"yanchor": "top", "align": "left"})


def _colored(text: str) -> str:
    color = {"add": COLORS[Op.REDUCE], "get": COLORS[Op.COPY]}.get(text.split(" ", 1)[0], INK)
    return f'<span style="color:{color}">{text}</span>'


def _add_squares(figure: go.Figure, grid: _Grid) -> None:
    """The slots of each rank after each column, those of one look in one trace."""
    looks: dict[tuple[str, str], list[tuple[float, float, int, str]]] = {}
    for row, cells in enumerate(grid.cells):
        for k, cell in enumerate(cells):
            fresh = {one.chunk: one.op for one in cell.received}
            for chunk, held in enumerate(cell.held):
                needed, op = grid.line.needed[chunk], fresh.get(chunk)
                x, y = grid.x[k] + 8 + SQUARE * (chunk + 0.5), grid.bottom(row)
                about = f"rank {grid.line.ranks[row]}, chunk {chunk}: {held} of {needed} contributions"
                look = _fill(held, needed), GRID if op is None else COLORS[op]
                looks.setdefault(look, []).append((x, y, chunk, about))
    for fill, edge in sorted(looks, key=lambda look: look[1] != GRID):
        spots = looks[fill, edge]
        figure.add_scatter(
            x=[spot[0] for spot in spots],
            y=[spot[1] for spot in spots],
            mode="markers+text",
            marker=_square(fill, edge),
            text=[str(spot[2]) for spot in spots],
            textfont={"size": 10, "color": "#ffffff" if fill == WHOLE else INK},
            hovertext=[spot[3] for spot in spots],
            hovertemplate="%{hovertext}<extra></extra>",
            showlegend=False,
        )
    fills, edges = {fill for fill, _ in looks}, {edge for _, edge in looks}
    named = {EMPTY: "nothing", OWN: "own contribution", SHADES[0]: "partial result", WHOLE: "whole"}
    if SHADES[0] not in fills:
        named = {SHADES[1] if fill == SHADES[0] else fill: name for fill, name in named.items()}
    legend = [(name, fill, GRID) for fill, name in named.items() if fill in fills]
    legend += [(WORDS[op], EMPTY, COLORS[op]) for op in Op if COLORS[op] in edges]
    for name, fill, edge in legend:
        figure.add_scatter(x=[None], y=[None], mode="markers", marker=_square(fill, edge), name=name, showlegend=True)


def _fill(held: int, needed: int) -> str:
    if held in (0, needed):
        return WHOLE if held else EMPTY
    return OWN if held == 1 else SHADES[2 * held > needed]


def _square(fill: str, edge: str) -> dict[str, object]:
    line = {"color": edge, "width": 1 if edge == GRID else 2.5}
    return {"symbol": "square", "size": SQUARE - 6, "color": fill, "line": line, "opacity": 1}


def _add_bars(figure: go.Figure, grid: _Grid) -> None:
    """How many chunks are whole at each rank after each column."""
    most = max((len(cell.owned) for cells in grid.cells for cell in cells), default=0)
    for full, color, name in ((True, GRID, ""), (False, WHOLE, f"chunks that are whole, of {most}")):
        x: list[float | None] = []
        y: list[float | None] = []
        for row, cells in enumerate(grid.cells):
            for k, cell in enumerate(cells):
                start, room = grid.x[k] + 8, grid.x[k + 1] - grid.x[k] - 16
                length = room if full else room * len(cell.owned) / max(most, 1)
                height = grid.bottom(row)
                if length:
                    x += [start, start + length, None]
                    y += [height, height, None]
        figure.add_scatter(
            x=x,
            y=y,
            mode="lines",
            line={"color": color, "width": 10},
            name=name,
            showlegend=bool(name),
            hoverinfo="skip",
        )
    spots = [(row, k, cell) for row, cells in enumerate(grid.cells) for k, cell in enumerate(cells)]
    figure.add_scatter(
        x=[(grid.x[k] + grid.x[k + 1]) / 2 for _, k, _ in spots],
        y=[grid.middle(row) for row, _, _ in spots],
        mode="markers",
        marker={"size": SQUARE, "opacity": 0},
        hovertext=[_about(grid.line.ranks[row], cell, grid.line.needed) for row, _, cell in spots],
        hovertemplate="%{hovertext}<extra></extra>",
        showlegend=False,
    )


def _about(rank: int, cell: Cell, needed: Sequence[int]) -> str:
    return "<br>".join([f"<b>rank {rank}</b>", *(escaped(text, 100) for text in cell_lines(cell, needed, 20))])


def _label(x: float, y: float, text: str, anchor: str) -> dict[str, object]:
    return {"x": x, "y": y, "text": text, "showarrow": False, "xanchor": anchor, "font": {"size": FONT, "color": INK}}

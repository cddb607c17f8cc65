"""Data to stdout, talk to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from dualcoll.progress import Progress

__all__ = ["on_line", "say", "show_json", "show_lines", "status_line"]


def show_json(record: dict[str, Any]) -> None:
    """Print one object."""
    typer.echo(json.dumps(record, indent=2, allow_nan=False))


def show_lines(lines: list[tuple[str, str]]) -> None:
    """Print labelled lines: aligned and wrapped on a terminal, one line each in a pipe."""
    width = max(len(label) for label, _ in lines)
    if not sys.stdout.isatty():
        for label, text in lines:
            typer.echo(f"{label:<{width}}  {text}")
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for label, text in lines:
        table.add_row(Text(label), Text(text))
    Console(highlight=False).print(table)


def say(text: str) -> None:
    """Tell people something that is no data."""
    print(text, file=sys.stderr)


@contextmanager
def status_line() -> Iterator[Callable[[str], None] | None]:
    """A line on the terminal that says what goes on; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status("reading the fabric") as status:
        yield status.update


def progress_text(now: Progress) -> str:
    """Value, bound, gap and seconds of a search."""
    from dualcoll.units import format_bandwidth, format_fraction

    return (
        f"{format_bandwidth(now.value)}, at most {format_bandwidth(now.bound)}, gap {format_fraction(now.gap)}, "
        f"{now.iterations} rounds, {now.seconds:.1f} s (Ctrl-C keeps the best so far)"
    )


def on_line(line: Callable[[str], None] | None) -> Callable[[Progress], None] | None:
    """What a search reports to, if there is a line."""
    return None if line is None else lambda now: line(progress_text(now))

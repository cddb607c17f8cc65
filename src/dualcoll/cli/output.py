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

__all__ = ["progress_line", "say", "show_json", "show_lines"]


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
def progress_line() -> Iterator[Callable[[Progress], None] | None]:
    """A line on the terminal with value, bound, gap and seconds; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    from dualcoll.units import format_bandwidth, format_fraction

    with Console(stderr=True).status("reading the fabric") as status:

        def show(now: Progress) -> None:
            status.update(
                f"{format_bandwidth(now.value)}, at most {format_bandwidth(now.bound)}, gap {format_fraction(now.gap)}, "
                f"{now.iterations} rounds, {now.seconds:.1f} s (Ctrl-C keeps the best so far)"
            )

        yield show

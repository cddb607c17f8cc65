"""The verbs in one application."""

from __future__ import annotations

import typer

from dualcoll.cli.bound import bound
from dualcoll.cli.check import check
from dualcoll.cli.convert import convert
from dualcoll.cli.plan import plan
from dualcoll.cli.simulate import compare, simulate
from dualcoll.cli.topo import topo

__all__ = ["app"]

app = typer.Typer(
    name="dualcoll",
    help="How fast can a collective run on this fabric, what limits it, and which plan is proved to reach it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(plan)
app.command()(bound)
app.command()(check)
app.command()(simulate)
app.command()(compare)
app.command()(convert)
app.add_typer(topo, name="topo")


def _version(show: bool) -> None:
    if show:
        from importlib.metadata import version

        typer.echo(f"dualcoll {version('dualcoll')}")
        raise typer.Exit


@app.callback()
def _root(
    _show: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    pass

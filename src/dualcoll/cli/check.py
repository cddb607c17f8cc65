"""``dualcoll check``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dualcoll.cli.options import Cpu, Gpu, Json, Nic, Pcie, RatesName, load
from dualcoll.cli.output import show_json, show_lines

__all__ = ["check"]


def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A plan file, by whomever.", show_default=False)],
    topology: Annotated[
        str | None, typer.Option("--topology", metavar="OTHER", help="Hold it against this fabric instead of its own.")
    ] = None,
    gpu: Gpu = None,
    nic: Nic = None,
    pcie: Pcie = None,
    cpu: Cpu = None,
    rates: RatesName = "nominal",
    as_json: Json = False,
) -> None:
    """Prove a plan's claims in exact arithmetic, or say which is not supported (exit code 1)."""
    from dualcoll._api import check as prove
    from dualcoll.errors import CheckFailed, InputError
    from dualcoll.reporting.tables import proof_record, proof_text

    if str(file) == "-":
        raise InputError("a plan is not read from standard input", where="FILE", hint="name a file")
    other = None if topology is None else load(topology, gpu, nic, pcie, cpu, rates)
    try:
        proof = prove(file, other)
    except CheckFailed as failed:
        if not as_json:
            raise
        show_json({"supported": False, "findings": list(failed.findings)})
        raise typer.Exit(1) from None
    if as_json:
        show_json(proof_record(proof))
    else:
        show_lines(proof_text(proof))

"""``dualcoll topo show``, ``topo list`` and ``topo detect``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dualcoll.cli.options import (
    Cpu,
    Gpu,
    Html,
    Json,
    Nic,
    Pcie,
    RatesName,
    TopologySpec,
    import_options,
    load,
    writable,
)
from dualcoll.cli.output import say, show_json, show_lines

__all__ = ["topo"]

topo = typer.Typer(help="Show, list and detect topologies.", no_args_is_help=True, rich_markup_mode=None)


@topo.command()
def show(
    topology: TopologySpec,
    gpu: Gpu = None,
    nic: Nic = None,
    pcie: Pcie = None,
    cpu: Cpu = None,
    rates: RatesName = "nominal",
    html: Html = None,
    as_json: Json = False,
) -> None:
    """Print what a topology holds, with the source of every capacity."""
    from dualcoll.reporting.tables import topology_record, topology_text

    writable(html, "--html", topology)
    fabric = load(topology, gpu, nic, pcie, cpu, rates)
    if as_json:
        show_json(topology_record(fabric))
    else:
        show_lines(topology_text(fabric))
    if html is not None:
        from dualcoll.reporting.html import topology_page

        topology_page(fabric, html)
        say(f"saved {html}")


@topo.command("list")
def list_catalogue(as_json: Json = False) -> None:
    """Print the catalogue: names, what they are, their options."""
    from dualcoll.topology.catalog import entries

    found = entries()
    if as_json:
        show_json(
            {
                "catalogue": [
                    {
                        "name": entry.name,
                        "summary": entry.summary,
                        "options": [{"name": option.name, "help": option.summary} for option in entry.options],
                    }
                    for entry in found
                ]
            }
        )
        return
    lines = []
    for entry in found:
        lines.append((entry.name, entry.summary))
        lines.append(("", ", ".join(option.name for option in entry.options)))
    show_lines(lines)


@topo.command()
def detect(
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Save it (.yaml, .json).")
    ] = None,
    gpu: Gpu = None,
    nic: Nic = None,
    pcie: Pcie = None,
    cpu: Cpu = None,
    rates: RatesName = "nominal",
    as_json: Json = False,
) -> None:
    """Read this machine's topology from nvidia-smi or rocm-smi."""
    from dualcoll.reporting.tables import topology_record, topology_text
    from dualcoll.topology.file import write_topology
    from dualcoll.topology.importers.detect import detect as detect_here

    writable(output, "--output")
    fabric = detect_here(import_options(gpu, nic, pcie, cpu, rates))
    if as_json:
        show_json(topology_record(fabric))
    else:
        show_lines(topology_text(fabric))
    if output is not None:
        write_topology(fabric, output)
        say(f"saved {output}")

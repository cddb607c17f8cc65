"""The machine that dualcoll runs on: ``nvidia-smi topo -m``, or ``rocm-smi --showtopo``."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dualcoll.errors import InputError
from dualcoll.topology.devices import gpu_model
from dualcoll.topology.importers import import_topology
from dualcoll.topology.importers.options import ImportOptions
from dualcoll.topology.importers.topo_matrix import decode_text
from dualcoll.topology.model import Topology

__all__ = ["detect"]

TIMEOUT = 60.0  # seconds; a first nvidia-smi without persistence mode takes many
INFINIBAND = Path("/sys/class/infiniband")


def detect(options: ImportOptions, infiniband: Path = INFINIBAND) -> Topology:
    """The topology of this machine; what the tools do not say comes from ``options``, as for a file.

    Args:
        infiniband: where the kernel lists RDMA devices; NIC speeds are read there unless ``options`` gives them.

    Raises:
        InputError: neither tool is there, one fails, or what it says is not enough.
    """
    if shutil.which("nvidia-smi"):
        command = ["nvidia-smi", "topo", "-m"]
        text = _output(command)
        return _imported(text, command, _completed(text, options, infiniband))
    if shutil.which("rocm-smi"):
        command = ["rocm-smi", "--showtopo"]
        return _imported(_output(command), command, options)
    raise InputError(
        "neither nvidia-smi nor rocm-smi is on the PATH",
        hint="run this on a GPU machine, or import a file from one (NCCL_TOPO_DUMP_FILE, nvidia-smi topo -m)",
    )


def _imported(text: bytes, command: Sequence[str], options: ImportOptions) -> Topology:
    topology = import_topology(text, " ".join(command), options)
    return replace(topology, name=f"this machine ({' '.join(command)})")


def _output(command: Sequence[str]) -> bytes:
    """Standard output of a command that must succeed."""
    where = " ".join(command)
    try:
        done = subprocess.run(command, capture_output=True, timeout=TIMEOUT, check=False, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise InputError(f"no answer within {TIMEOUT:g} s", where=where, hint="see whether it runs by hand") from None
    except OSError as error:
        raise InputError(f"cannot be run: {error.strerror}", where=where) from None
    if done.returncode:
        said = (decode_text(done.stderr) or decode_text(done.stdout)).strip().splitlines()
        raise InputError(
            f"failed with exit code {done.returncode}{f': {said[0][:200]}' if said else ''}",
            where=where,
            hint="see whether it runs by hand",
        )
    return done.stdout


def _completed(matrix: bytes, options: ImportOptions, infiniband: Path) -> ImportOptions:
    """The options with GPU model and NIC speeds of this machine where the user gave none."""
    if options.gpu is None:
        command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
        names = {line.strip() for line in decode_text(_output(command)).splitlines() if line.strip()}
        if len(names) != 1:
            raise InputError(
                f"the GPUs are not of one model ({', '.join(sorted(names)) or 'none is named'})",
                where=" ".join(command),
                hint="give --gpu MODEL",
            )
        options = replace(options, gpu=_known(names.pop()), found=options.found | {"gpu"})
    if options.nic is None:
        speeds = _nic_speeds(infiniband)
        present = set(re.findall(r"[\w.:-]+", decode_text(matrix)))
        known = [f"{speed}={name}" for name, speed in sorted(speeds.items()) if name in present]
        options = replace(options, nic=";".join(known) or None, found=options.found | {"nic"})
    return options


def _known(name: str) -> str | None:
    """The name if it is in the table of models; one that is not may not be needed."""
    try:
        gpu_model(name)
    except InputError:
        return None
    return name


def _nic_speeds(infiniband: Path) -> dict[str, str]:
    """Speed of each RDMA device, such as ``400Gb/s``, from the fastest port that the kernel reports."""
    speeds: dict[str, str] = {}
    for device in sorted(infiniband.glob("*")):
        rates = []
        for file in device.glob("ports/*/rate"):
            try:
                match = re.match(r"([0-9]+(?:\.[0-9]+)?) Gb/sec", file.read_text())
            except OSError:
                continue
            if match and float(match[1]) > 0:
                rates.append(match[1])
        if rates:
            speeds[device.name] = f"{max(rates, key=float)}Gb/s"
    return speeds

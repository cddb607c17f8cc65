"""What the user says beside the file: GPU model, NIC speed, PCIe generation, rate between CPUs, whose rates.

What the file says wins. A flag that nothing used is noted, because the user believes otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dualcoll.errors import InputError
from dualcoll.topology.devices import GpuModel, Rate, Rates, gpu_model, pcie_rate, unknown_cpu_rate
from dualcoll.units import parse_bandwidth

__all__ = [
    "GPU_HINT",
    "NIC_HINT",
    "CpuLinks",
    "GpuChoice",
    "ImportOptions",
    "NicChoice",
    "Pcie",
    "counted",
    "keys_behind",
    "no_flag",
    "refuse_unknown",
    "unused_flags",
]

GPU_HINT = "--gpu MODEL (such as H100 or MI300X)"
NIC_HINT = "--nic SPEED (such as 400Gb/s)"


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Flags of the command line or keys of a file, as text; None where the user does not say.

    Attributes:
        gpu: ``MODEL``, or ``MODEL=id,id`` to say which devices are the GPUs.
        nic: ``SPEED``, or ``SPEED=id,id;SPEED=id`` to say which devices are the NICs.
        pcie: generation, and the number of lanes if it is not 16: ``Gen4``, ``5``, ``Gen5 x8``.
        cpu: bandwidth between two CPU sockets, such as ``40GB/s``.
        rates: whose figures the links get.
        found: names of those that this machine said, not the user: they may be of no use.
        behind: what stands behind the file's name, ``boxes=2,scale=10``; of files of other planners.
    """

    gpu: str | None = None
    nic: str | None = None
    pcie: str | None = None
    cpu: str | None = None
    rates: Rates = Rates.NOMINAL
    found: frozenset[str] = frozenset()
    behind: str = ""


def unused_flags(options: ImportOptions, reasons: Mapping[str, str | None]) -> list[str]:
    """A note for each flag of the user that changed nothing: what the input says goes before what the user says.

    Args:
        reasons: by field name, why nothing used it; None if something did.
    """
    return [
        f"--{name} {getattr(options, name)[:60]} changed nothing: {reason}"
        for name, reason in reasons.items()
        if reason is not None and getattr(options, name) is not None and name not in options.found
    ]


def no_flag(options: ImportOptions, reason: str) -> list[str]:
    """The notes for an input that has no use for any of the flags."""
    notes = unused_flags(options, dict.fromkeys(("gpu", "nic", "pcie", "cpu"), reason))
    if options.rates is not Rates.NOMINAL:
        notes.append(f"--rates {options.rates} changed nothing: {reason}")
    return notes


def keys_behind(options: ImportOptions, known: Mapping[str, str]) -> dict[str, str]:
    """What stands behind the file's name, by key.

    Args:
        known: the keys that there are, and what each may be.

    Raises:
        InputError: an item that is not ``key=value``, a key that is not known, or one given twice.
    """
    given: dict[str, str] = {}
    for item in options.behind.split(",") if options.behind.strip() else ():
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals or key not in known or not value or key in given:
            problem = f"{key[:60]} is given twice" if key in given else f"cannot read {item[:60]!r}"
            hint = ", ".join(f"{name}={what}" for name, what in known.items())
            raise InputError(problem, where="behind the file's name", hint=f"it takes {hint}")
        given[key] = value
    return given


def refuse_unknown(ids: Iterable[str], known: Iterable[str], what: str, where: str) -> None:
    """Refuse ids that a flag gives but that no device has.

    Args:
        known: the ids of the devices, in lower case or as the input spells them.
        what: such as ``GPU has busid``.

    Raises:
        InputError: naming all of them, and what there is.
    """
    listed = list(dict.fromkeys(known))
    lower = {name.lower() for name in listed}
    unknown = [name for name in ids if name not in lower]
    if unknown:
        more = f" and {len(listed) - 12} more" if len(listed) > 12 else ""
        there = f"there are {', '.join(name[:60] for name in listed[:12])}{more}" if listed else "there are none"
        raise InputError(f"no {what} {', '.join(repr(name[:60]) for name in unknown[:12])}", where=where, hint=there)


@dataclass(slots=True)
class GpuChoice:
    """``--gpu``: the model, and the devices that are GPUs (lower case, empty if it does not name them)."""

    model: GpuModel
    ids: tuple[str, ...]
    used: bool = field(default=False, init=False)

    def refuse_ids(self, what: str) -> None:
        """For an input that says itself which devices are the GPUs.

        Raises:
            InputError: the flag names devices.
        """
        if self.ids:
            raise InputError(
                f"{what} says itself which devices are the GPUs, but {', '.join(self.ids)[:60]!r} are named",
                where="--gpu",
                hint=f"give --gpu '{self.model.name}'",
            )

    @classmethod
    def of(cls, options: ImportOptions) -> GpuChoice | None:
        """Read ``options.gpu``.

        Raises:
            InputError: an unknown model, or a list of ids that is empty or repeats one.
        """
        if options.gpu is None:
            return None
        name, ids = _named(options.gpu, "--gpu")
        try:
            return cls(gpu_model(name), ids)
        except InputError as error:
            raise error.within("--gpu") from None


@dataclass(slots=True)
class NicChoice:
    """``--nic``: a speed in bytes/s for every NIC, or for the ones that it names (lower case)."""

    default: float | None
    by_id: dict[str, float]
    used: bool = field(default=False, init=False)

    @classmethod
    def of(cls, options: ImportOptions) -> NicChoice | None:
        """Read ``options.nic``.

        Raises:
            InputError: a speed without unit, a list of ids that is empty, or a NIC named twice.
        """
        if options.nic is None:
            return None
        default: float | None = None
        by_id: dict[str, float] = {}
        for part in options.nic.split(";"):
            text, ids = _named(part, "--nic")
            try:
                speed = parse_bandwidth(text)
            except InputError as error:
                raise error.within("--nic") from None
            if not ids and default is not None:
                raise InputError("it gives two speeds for every NIC", where="--nic")
            default = default if ids else speed
            for name in ids:
                if name in by_id:
                    raise InputError(f"NIC {name[:60]} is named twice", where="--nic")
                by_id[name] = speed
        return cls(default, by_id)

    def speed(self, *names: str) -> float | None:
        """Bytes/s of the NIC that goes by any of these names; None if ``--nic`` names others only.

        Raises:
            InputError: the flag has two of the names.
        """
        found = [name for name in dict.fromkeys(name.lower() for name in names) if name in self.by_id]
        if len(found) > 1:
            raise InputError(f"{found[0][:60]} and {found[1][:60]} are the same NIC", where="--nic")
        speed = self.by_id[found[0]] if found else self.default
        self.used = self.used or speed is not None
        return speed


@dataclass(slots=True)
class CpuLinks:
    """Gives the links between CPUs that the input does not name their rate.

    Attributes:
        rate: that of ``--cpu``, else what is assumed.
        count: how many links got it.
    """

    rate: Rate
    is_given: bool
    count: int = field(default=0, init=False)

    @classmethod
    def of(cls, options: ImportOptions) -> CpuLinks:
        """Read ``options.cpu``.

        Raises:
            InputError: it is no bandwidth.
        """
        if options.cpu is None:
            return cls(unknown_cpu_rate(options.rates), False)
        try:
            capacity = parse_bandwidth(options.cpu)
        except InputError as error:
            raise error.within("--cpu") from None
        return cls(Rate(capacity, f"between CPU sockets, {capacity / 1e9:g} GB/s; from --cpu"), True)

    def link(self) -> Rate:
        """The rate of one more link."""
        self.count += 1
        return self.rate

    def notes(self) -> list[str]:
        """The assumption in words, if one was made."""
        if self.is_given or not self.count:
            return []
        return [f"the input does not say what its CPUs are: {self.rate.source}; give --cpu RATE if it is another"]


def _named(text: str, flag: str) -> tuple[str, tuple[str, ...]]:
    """``VALUE=id,id`` as its value and lower-case ids."""
    value, equals, rest = text.partition("=")
    ids = tuple(part.strip().lower() for part in rest.split(",")) if equals else ()
    if not all(ids):
        raise InputError(f"an empty name in {text[:60]!r}", where=flag, hint="separate names by single commas")
    if len(set(ids)) != len(ids):
        raise InputError(f"a device is named twice in {text[:60]!r}", where=flag)
    return value.strip(), ids


@dataclass(slots=True)
class Pcie:
    """Gives PCIe links their rates and keeps what had to be assumed.

    Attributes:
        options: where ``--pcie`` and the rates come from.
        gpu: the GPU model, if known: its generation is the second choice.
        assumed, from_flag: how many links got an assumed generation, or that of ``--pcie``.
    """

    options: ImportOptions
    gpu: GpuChoice | None
    assumed: int = field(default=0, init=False)
    from_flag: int = field(default=0, init=False)

    def given(self) -> tuple[int, int] | None:
        """Generation and lanes of ``--pcie``.

        Raises:
            InputError: text that names no generation from 1 to 6.
        """
        if self.options.pcie is None:
            return None
        match = re.fullmatch(
            r"\s*(?:gen|pcie)?\s*([1-6])(?:\.0)?\s*(?:x\s*(1|2|4|8|16))?\s*", self.options.pcie.lower()
        )
        if match is None:
            raise InputError(
                f"cannot read PCIe generation {self.options.pcie[:60]!r}",
                where="--pcie",
                hint='write "Gen4", or "Gen4 x8" if the links are not x16',
            )
        return int(match[1]), int(match[2] or 16)

    def rate(self, generation: int | None, width: int | None) -> Rate:
        """The rate of a link from what the input says of it; what is None comes from flag, model or default."""
        flag = self.given()
        if generation is not None:
            return pcie_rate(generation, width or 16, self.options.rates)
        if flag is not None:
            self.from_flag += 1
            return pcie_rate(flag[0], width or flag[1], self.options.rates, "from --pcie")
        self.assumed += 1
        if self.gpu:
            self.gpu.used = True
        generation = self.gpu.model.pcie if self.gpu else 3
        return pcie_rate(generation, width or 16, self.options.rates, f"generation assumed: {self._reason()}")

    def notes(self) -> list[str]:
        """The assumption in words, if any was made."""
        if not self.assumed:
            return []
        generation = self.gpu.model.pcie if self.gpu else 3
        links = counted(self.assumed, "PCIe link")
        text = f"PCIe Gen{generation} is assumed for {links} ({self._reason()}); give --pcie if it is another"
        return [text]

    def _reason(self) -> str:
        return f"that of {self.gpu.model.name}" if self.gpu else "what NCCL assumes"


def counted(count: float, noun: str) -> str:
    """Text such as ``2 links``."""
    return f"{count:g} {noun}{'' if count == 1 else 's'}"

"""What the user says beside the file: GPU model, NIC speed, PCIe generation, whose rates."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from dualcoll.errors import InputError
from dualcoll.topology.devices import GpuModel, Rate, Rates, gpu_model, pcie_rate
from dualcoll.units import parse_bandwidth

__all__ = ["GPU_HINT", "NIC_HINT", "GpuChoice", "ImportOptions", "NicChoice", "Pcie", "counted"]

GPU_HINT = "--gpu MODEL (such as H100 or MI300X)"
NIC_HINT = "--nic SPEED (such as 400Gb/s)"


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Flags of the command line or keys of a file, as text; None where the user does not say.

    Attributes:
        gpu: ``MODEL``, or ``MODEL=id,id`` to say which devices are the GPUs.
        nic: ``SPEED``, or ``SPEED=id,id;SPEED=id`` to say which devices are the NICs.
        pcie: generation, and the number of lanes if it is not 16: ``Gen4``, ``5``, ``Gen5 x8``.
        rates: whose figures the links get.
    """

    gpu: str | None = None
    nic: str | None = None
    pcie: str | None = None
    rates: Rates = Rates.NOMINAL


@dataclass(frozen=True, slots=True)
class GpuChoice:
    """``--gpu``: the model, and the devices that are GPUs (lower case, empty if it does not name them)."""

    model: GpuModel
    ids: tuple[str, ...]

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


@dataclass(frozen=True, slots=True)
class NicChoice:
    """``--nic``: a speed in bytes/s for every NIC, or for the ones that it names (lower case)."""

    default: float | None
    by_id: dict[str, float]

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
        """Bytes/s of the NIC that goes by any of these names; None if ``--nic`` names others only."""
        for name in names:
            if name.lower() in self.by_id:
                return self.by_id[name.lower()]
        return self.default


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
        model: the GPU model, if known: its generation is the second choice.
        assumed, from_flag: how many links got an assumed generation, or that of ``--pcie``.
    """

    options: ImportOptions
    model: GpuModel | None
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
        generation = self.model.pcie if self.model else 3
        return pcie_rate(generation, width or 16, self.options.rates, f"generation assumed: {self._reason()}")

    def notes(self) -> list[str]:
        """The assumption in words, if any was made, or that the flag was of no use."""
        if self.given() is not None and not self.from_flag:
            return ["--pcie is used only for links whose speed the file does not say, and there are none"]
        if not self.assumed:
            return []
        generation = self.model.pcie if self.model else 3
        links = counted(self.assumed, "PCIe link")
        text = f"PCIe Gen{generation} is assumed for {links} ({self._reason()}); give --pcie if it is another"
        return [text]

    def _reason(self) -> str:
        return f"that of {self.model.name}" if self.model else "what NCCL assumes"


def counted(count: float, noun: str) -> str:
    """Text such as ``2 links``."""
    return f"{count:g} {noun}{'' if count == 1 else 's'}"

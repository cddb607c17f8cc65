"""The exception tree.

    DualcollError
    ├── InputError       something the caller gave is wrong; the command line exits with 2
    └── CheckFailed      a plan's claim is not supported; the command line exits with 1

Every message says what is wrong, where, the value, and what to try.
"""

from __future__ import annotations

__all__ = ["CheckFailed", "DualcollError", "InputError"]


class DualcollError(Exception):
    """Base of every error that dualcoll raises on purpose."""


class InputError(DualcollError):
    """Input that cannot be used.

    Attributes:
        problem: what is wrong, with the offending value.
        where: file and line, key, rank or link; empty if there is no place to name.
        hint: what to try; empty if there is nothing to add.
    """

    def __init__(self, problem: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(problem, where, hint)
        self.problem = problem
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        advice = f"; {self.hint}" if self.hint else ""
        return f"{place}{self.problem}{advice}"

    def within(self, where: str) -> InputError:
        """Return the same error with an outer place put before its own."""
        return InputError(self.problem, where=": ".join(filter(None, (where, self.where))), hint=self.hint)


class CheckFailed(DualcollError):
    """A plan claims what its content does not support.

    Attributes:
        findings: one sentence per unsupported claim, each with its witness.
    """

    def __init__(self, findings: tuple[str, ...]) -> None:
        super().__init__(findings)
        self.findings = findings

    def __str__(self) -> str:
        return "\n".join(self.findings)

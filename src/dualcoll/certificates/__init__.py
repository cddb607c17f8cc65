"""Proof of a plan's claims in exact arithmetic, independent of whatever made the plan."""

from dualcoll.certificates.check import Proof, check_plan

__all__ = ["Proof", "check_plan"]

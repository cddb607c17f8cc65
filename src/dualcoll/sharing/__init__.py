"""Bandwidth that nobody controls: what a plan's trees get where the network shares by max-min."""

from dualcoll.sharing.realise import Delivery, Sharing, share

__all__ = ["Delivery", "Sharing", "share"]

"""What this machine has. The only module that asks it."""

from __future__ import annotations

import os

__all__ = ["free_memory"]

UNKNOWN = 4 * 2**30  # bytes taken to be free where nobody says


def free_memory() -> int:
    """Bytes of main memory that nobody uses, or that only caches use."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return UNKNOWN

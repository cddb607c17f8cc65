"""A call that can be given up: it runs in a thread of its own, so that signals (Ctrl-C) still reach the caller's.

Solvers in C++ do not return to Python for minutes, and Python handles signals in the main thread only.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

__all__ = ["watched"]

T = TypeVar("T")
LOOK = 0.02  # seconds between two questions whether to give up


def watched(call: Callable[[], T], stopped: Callable[[], bool], stop: Callable[[], None]) -> T:
    """Run ``call``; once ``stopped`` says so, ask it to end through ``stop`` until it does.

    Raises:
        BaseException: whatever ``call`` raises.
    """
    found: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(call())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(LOOK)
            if stopped():
                stop()
    except BaseException:
        while thread.is_alive():
            stop()
            thread.join(LOOK)
        raise
    if failed:
        raise failed[0]
    return found[0]

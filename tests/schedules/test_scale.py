"""Large schedules: two million sends are made, validated and written in seconds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import resource, time
from tests.schedules.samples import ring, all_to_all
from dualcoll.schedules.validate import validate
schedule = ring(1024)
validate(ring(3))
start = time.perf_counter()
validate(schedule)
seconds = time.perf_counter() - start
validate(all_to_all(256))
print(schedule.sends, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def test_a_ring_of_1024_ranks() -> None:
    """Validating the 2 M sends of a ring AllReduce over 1,024 ranks takes at most 20 s and 4 GiB."""
    root = Path(__file__).parent.parent.parent
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=root, capture_output=True, text=True, check=True)
    sends, seconds, most = map(float, done.stdout.split())
    assert sends == 2 * 1023 * 1024
    assert seconds <= 20
    assert most <= 4 * 2**30

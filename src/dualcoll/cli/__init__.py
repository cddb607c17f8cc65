"""The command line: one file per verb.

Exit codes: 0 done, 1 a check failed, 2 unusable input or usage, 70 a fault of dualcoll.
"""

from __future__ import annotations

import os
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit."""
    from dualcoll.cli.app import app
    from dualcoll.errors import CheckFailed, InputError

    try:
        app()
    except CheckFailed as failed:
        print(failed, file=sys.stderr)
        sys.exit(1)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except MemoryError:
        print("error: not enough memory for this fabric", file=sys.stderr)
        sys.exit(2)
    except Exception as error:
        if os.environ.get("DUALCOLL_TRACEBACK"):
            raise
        kind = type(error).__name__
        print(
            f"internal error: {kind}: {error} (a fault of dualcoll; DUALCOLL_TRACEBACK=1 shows where)", file=sys.stderr
        )
        sys.exit(70)

"""The command line: one file per verb. Exit codes: 0 done, 1 a check failed, 2 unusable input or usage."""

from __future__ import annotations

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

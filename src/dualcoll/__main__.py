"""``python -m dualcoll``."""

from dualcoll.cli import main

if __name__ == "__main__":
    main()

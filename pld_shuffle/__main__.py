"""``python -m pld_shuffle``: the same as the command ``pld-shuffle``."""

from pld_shuffle.cli import main

if __name__ == "__main__":
    raise SystemExit(main())

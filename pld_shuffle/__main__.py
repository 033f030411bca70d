"""The command ``pld-shuffle``, and ``python -m pld_shuffle``."""

import os
import signal


def main() -> int:
    """Run the command line. Until it knows something, Ctrl-C ends the process at once, imports included."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    from pld_shuffle import cli

    return cli.main(known=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))


if __name__ == "__main__":
    raise SystemExit(main())

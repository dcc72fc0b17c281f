"""`python -m bot`, and the console script `footnote`.

Imports are made within, so that who presses Ctrl-C as early as that sees no traceback.
"""

import sys

INTERRUPTED = 130


def main() -> None:
    """Run the command line of this process."""
    try:
        from bot.cli.entry_point import main as run
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    run()


if __name__ == "__main__":
    main()

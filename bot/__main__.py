"""`python -m bot`, and the console script `footnote`.

The command line is imported inside `main`, so that pressing Ctrl-C during the import shows no traceback.
"""

import sys

INTERRUPTED = 130


def main() -> None:
    try:
        from bot.cli.entry_point import main as run
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    run()


if __name__ == "__main__":
    main()

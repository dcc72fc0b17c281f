"""`python -m bot`, the same as the console script `footnote`."""

from bot.cli import main

main()

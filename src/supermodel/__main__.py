"""`python -m supermodel`."""

import sys

from supermodel.shell.cli import main

if __name__ == "__main__":
    sys.exit(main())

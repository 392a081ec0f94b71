"""`python -m supermodel`."""

import sys

from supermodel.cli import main

if __name__ == "__main__":
    sys.exit(main())

"""`python -m benchmarks.fire`: the same as `python -m benchmarks fire`."""

import sys

from benchmarks.fire.trial import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

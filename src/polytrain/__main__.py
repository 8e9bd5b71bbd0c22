"""``python -m polytrain`` is the command ``polytrain``."""

import sys

from polytrain.cli import main

if __name__ == "__main__":
    sys.exit(main())

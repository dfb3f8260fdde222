"""``python -m fluidx`` is the `fluidx` command."""

import sys

from fluidx.cli import main

sys.exit(main())

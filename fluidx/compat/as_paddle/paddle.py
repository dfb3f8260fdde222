"""``import paddle`` where nothing was installed by hand: a spawned process, say."""

import importlib
import sys


def _give_way() -> None:
    """Put what `fluidx.compat` calls paddle in the place of this module."""
    from fluidx.compat import install_as_paddle

    me = sys.modules.pop("paddle")
    try:
        install_as_paddle(replace=True)
        importlib.import_module("paddle")
    except BaseException:
        sys.modules["paddle"] = me
        raise


if __name__ == "paddle":
    _give_way()

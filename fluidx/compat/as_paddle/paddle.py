"""``import paddle`` where nothing was installed by hand: a spawned process, say."""

import importlib
import sys

from fluidx.compat import install_as_paddle

_me = sys.modules.pop(__name__)
try:
    install_as_paddle(replace=True)
    importlib.import_module("paddle")
except BaseException:
    sys.modules[__name__] = _me
    raise

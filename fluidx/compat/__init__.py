"""Scripts of PaddlePaddle Fluid 1.x, unmodified: ``import paddle.fluid as fluid``.

    import fluidx.compat
    fluidx.compat.install_as_paddle()
    import paddle.fluid as fluid          # fluidx

or, with nothing to change at all, ``fluidx run train.py``. ``paddle.fluid.X`` *is*
``fluidx.X``: the same module, so programs, scopes and classes of both names mix. What
fluidx has not raises ImportError or AttributeError and says so.

`install_as_paddle` puts the folder `PATH` at the end of ``sys.path``; that is how
processes that multiprocessing spawns find the names again. Old names that NumPy 2 and
Python 3.10 dropped (``numpy.float``, ``collections.Iterable``, ...; see `old_names`)
are restored unless ``old_names=False`` or FLUIDX_OLD_NAMES=0 says no.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from pathlib import Path

from . import conversions as _conversions
from . import old_names as _old_names
from .finder import AbsentFinder, Finder
from .inner_names import answer_all
from .submodules import open_layers

__all__ = ["PATH", "install", "install_as_paddle", "installed", "uninstall"]

#: a folder whose ``paddle`` is fluidx: for sys.path or PYTHONPATH
PATH = str(Path(__file__).parent / "as_paddle")

_finder, _absent = Finder(), AbsentFinder()


def installed() -> bool:
    """Whether ``paddle`` is fluidx in this process."""
    return _finder in sys.meta_path


def install_as_paddle(*, replace: bool = False, old_names: bool = True) -> None:
    """Make ``import paddle`` give fluidx from now on.

    replace: do so although a real PaddlePaddle is installed, or even imported; without
    it that is an ImportError. old_names: restore what old scripts lean on (above).
    """
    if old_names and os.environ.get("FLUIDX_OLD_NAMES", "1") != "0":
        _old_names.restore()
        _conversions.restore()
    if installed():
        return
    real = real_paddle()
    if real is not None and not replace:
        raise ImportError(
            f"a PaddlePaddle is installed at {real}; install_as_paddle(replace=True) "
            "puts fluidx in its place for this process",
            name="paddle",
        )
    for name in [n for n in sys.modules if n.partition(".")[0] == "paddle"]:
        del sys.modules[name]
    sys.meta_path.insert(0, _finder)
    sys.meta_path.append(_absent)
    if PATH not in sys.path:
        sys.path.append(PATH)
    open_layers()
    answer_all()


def install() -> None:
    """`install_as_paddle` for commands: a real PaddlePaddle gets a warning."""
    if installed():
        return
    real = real_paddle()
    if real is not None:
        text = f"paddle means fluidx here, not the PaddlePaddle installed at {real}"
        warnings.warn(text, stacklevel=2)
    install_as_paddle(replace=True)


def uninstall() -> None:
    """Forget the names again (old names of numpy stay)."""
    if not installed():
        return
    sys.meta_path.remove(_finder)
    sys.meta_path.remove(_absent)
    if PATH in sys.path:
        sys.path.remove(PATH)
    for name in [n for n in sys.modules if n.partition(".")[0] == "paddle"]:
        del sys.modules[name]


def real_paddle() -> str | None:
    """Where a ``paddle`` that is not fluidx would come from; None if there is none."""
    loaded = sys.modules.get("paddle")
    if loaded is not None:
        file = getattr(loaded, "__file__", None)
        ours = getattr(loaded, "__fluidx__", False) or _is_ours(file)
        return None if ours else str(file)
    try:
        spec = importlib.util.find_spec("paddle")
    except (ImportError, ValueError):
        return None
    if spec is None or _is_ours(spec.origin):
        return None
    return str(spec.origin or next(iter(spec.submodule_search_locations or ["?"])))


def _is_ours(file: str | None) -> bool:
    return file is not None and Path(file).parent == Path(PATH)

"""What to do about errors that old scripts meet on today's Python and NumPy."""

from __future__ import annotations

import importlib.util
import re

__all__ = ["hint", "module_hint"]

_PYTHON2 = "Python 2 had it"
_CONVERT = (
    "this is Python 2; convert it first, for example with futurize "
    "(pip install future) or modernize"
)
_SETUPTOOLS = "Python 3.12 dropped it; pip install setuptools brings it back"

#: module -> what stands in its place
_MODULES = {
    "distutils": _SETUPTOOLS,
    "imp": "Python 3.12 dropped it; use importlib",
    "asynchat": "Python 3.12 dropped it; use asyncio",
    "asyncore": "Python 3.12 dropped it; use asyncio",
    "cgi": "Python 3.13 dropped it; pip install legacy-cgi",
    "pipes": "Python 3.13 dropped it; use shlex and subprocess",
    "imghdr": "Python 3.13 dropped it",
    "cPickle": f"{_PYTHON2}; import pickle",
    "cStringIO": f"{_PYTHON2}; use io.StringIO or io.BytesIO",
    "StringIO": f"{_PYTHON2}; use io.StringIO or io.BytesIO",
    "ConfigParser": f"{_PYTHON2}; import configparser",
    "Queue": f"{_PYTHON2}; import queue",
    "SocketServer": f"{_PYTHON2}; import socketserver",
    "BaseHTTPServer": f"{_PYTHON2}; import http.server",
    "commands": f"{_PYTHON2}; use subprocess",
    "urllib2": f"{_PYTHON2}; use urllib.request",
    "urlparse": f"{_PYTHON2}; use urllib.parse",
    "httplib": f"{_PYTHON2}; import http.client",
    "itertools.izip": f"{_PYTHON2}; use zip",
    "cv2": "pip install opencv-python-headless",
    "PIL": "pip install pillow",
    "sklearn": "pip install scikit-learn",
    "yaml": "pip install pyyaml",
    "scipy.misc": "SciPy dropped it; read images with imageio or Pillow",
    "sklearn.externals": "scikit-learn dropped it; import joblib",
    "numpy.testing.decorators": "NumPy dropped it; use pytest",
}

#: builtin name -> what stands in its place
_NAMES = {
    "xrange": "range",
    "raw_input": "input",
    "unicode": "str",
    "basestring": "str",
    "long": "int",
    "unichr": "chr",
    "reduce": "functools.reduce",
    "reload": "importlib.reload",
    "file": "open",
    "cmp": "functools.cmp_to_key",
    "execfile": "exec(open(...).read())",
    "izip": "zip",
}

#: (pattern of a message, hint)
_MESSAGES = (
    (r"has no attribute '(iteritems|itervalues|iterkeys)'", "drop the `iter`"),
    (r"has no attribute 'has_key'", "write `key in dict`"),
    (r"'builtin_function_or_method' object has no attribute 'next'", "use next(...)"),
    (r"'generator' object has no attribute 'next'", "use next(generator)"),
    (
        r"module 'scipy.misc' has no attribute",
        "SciPy dropped it; read images with imageio or Pillow",
    ),
    (
        r"inhomogeneous shape",
        "NumPy makes arrays of lists of several lengths no more; give dtype=object, "
        "or feed them as fluid.create_lod_tensor",
    ),
    (
        r"Object arrays cannot be loaded when allow_pickle=False",
        "np.load(..., allow_pickle=True), if you trust the file",
    ),
    (
        r"(module 'numpy'|`np\.\w+`).* (has no attribute|was removed|was a deprecated)",
        "NumPy dropped it; `fluidx run` restores the usual ones unless it is told "
        "--no-old-names",
    ),
    (
        r"only (0-dimensional|length-1|size-1) arrays can be converted",
        "NumPy converts arrays without dimensions only: take array.item()",
    ),
    (r"invalid mode: '\w*U", "leave the U out: it is how files are read anyway"),
    (
        r"got an unexpected keyword argument 'encoding'",
        "json.loads takes text, and no encoding",
    ),
)
_PRINT = r"Missing parentheses in call to|multiple exception types|Did you mean print"
_SYNTAX2 = (
    rf"{_PRINT}|leading zeros in decimal|inconsistent use of tabs|"
    r"invalid (hexadecimal|decimal|octal) literal"
)


def module_hint(name: str) -> str:
    """What stands in the place of a module that is not there; "" where that is not
    known, and for a module that is there."""
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        part = ".".join(parts[:length])
        if part in _MODULES:
            return "" if _is_there(part) else _MODULES[part]
    return ""


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def hint(error: BaseException) -> str:
    """What to do about an error; "" where nothing is known."""
    if isinstance(error, ModuleNotFoundError):
        name = error.name or ""
        why = module_hint(name)
        return f"{name}: {why}" if why else ""
    text = str(error)
    if isinstance(error, SyntaxError):
        old = re.search(_SYNTAX2, text) or _is_print(error)
        return _CONVERT if old else ""
    if isinstance(error, NameError):
        instead = _NAMES.get(getattr(error, "name", None) or "")
        return f"{error.name} is Python 2; use {instead}" if instead else ""
    return next((h for pattern, h in _MESSAGES if re.search(pattern, text)), "")


def _is_print(error: SyntaxError) -> bool:
    line = (error.text or "").strip()
    return (
        re.match(r"(print\s+[^(=]|exec\s+[^(=]|raise \w+,|except [\w.]+,)", line)
        is not None
    )

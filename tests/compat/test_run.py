"""``fluidx run``: scripts run as under ``python``, and errors help with old ones."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.lib import NumpyVersion

from fluidx.compat import hints, old_names

HEAD = "import numpy as np\nimport paddle.fluid.layers as layers\n"
HEAD += "import paddle.fluid as fluid\n"


@pytest.fixture
def run(tmp_path):
    """Run source as a script; returns (exit code, output, errors)."""

    def run(source, *args, flags=(), **env):
        path = tmp_path / "script.py"
        path.write_text(source)
        command = [sys.executable, "-m", "fluidx", "run", *flags, str(path), *args]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, **env},
            timeout=120,
        )
        return done.returncode, done.stdout, done.stderr

    return run


def test_main_is_as_under_python(run, tmp_path):
    (tmp_path / "helper.py").write_text("N = 5\n")
    returned, out, errors = run(
        HEAD + "import os, pickle, sys, helper\n"
        "class C: pass\n"
        "assert type(pickle.loads(pickle.dumps(C()))) is C\n"
        "assert __spec__ is None and __package__ is None and __doc__ is None\n"
        "assert layers is fluid.layers and np.float is float\n"
        "print(helper.N, __name__, sys.argv[1:], os.path.isabs(__file__))\n"
        "print(os.path.samefile(sys.path[0], os.path.dirname(__file__)))\n"
        "sys.exit('bye')\n",
        "-m",
        "x",
    )
    assert (returned, errors) == (1, "bye\n")
    assert out == "5 __main__ ['-m', 'x'] True\nTrue\n"


def test_folders_and_modules(run, tmp_path):
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text("import sys, paddle; print(sys.argv[1:])\n")
    (package / "other.py").write_text("N = 3\n")
    (package / "train.py").write_text(
        "from . import other\nimport paddle.fluid as fluid\n"
        "print(other.N, __name__)\nraise ValueError('mine')\n"
    )
    for target, wanted in (("pkg", "['1']\n"), ("pkg.train", "3 __main__\n")):
        flags = ["-m"] if "." in target else []
        done = subprocess.run(
            [sys.executable, "-m", "fluidx", "run", *flags, target, "1"],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=60,
        )
        assert done.stdout == wanted
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1].startswith(f'  File "{package / "train.py"}", line 4')
    assert lines[-1] == "ValueError: mine"


def test_processes_find_the_names(run):
    source = HEAD + (
        "import multiprocessing as mp, subprocess, sys\n"
        "def work(n):\n"
        "    main = fluid.Program()\n"
        "    with fluid.program_guard(main):\n"
        "        y = layers.scale(fluid.data('x', [1]), float(n))\n"
        "    feed = {'x': np.ones(1, 'float32')}\n"
        "    exe = fluid.Executor(fluid.CPUPlace())\n"
        "    (found,) = exe.run(main, feed=feed, fetch_list=[y])\n"
        "    return float(found), np.float is float\n"
        "if __name__ == '__main__':\n"
        "    for how in ('spawn', 'fork', 'forkserver'):\n"
        "        with mp.get_context(how).Pool(1) as pool:\n"
        "            print(how, pool.map(work, [2, 3], chunksize=2))\n"
    )
    returned, out, errors = run(source)
    assert returned == 0, errors
    row = "[(2.0, True), (3.0, True)]"
    assert out == "".join(f"{m} {row}\n" for m in ("spawn", "fork", "forkserver"))


# ---------------------------------------------------------------- errors


def test_errors_show_the_script_only(run):
    source = HEAD + (
        "def net():\n    return fluid.data('x', [2]) + fluid.data('y', [3])\nnet()\n"
    )
    returned, _, errors = run(source)
    assert returned == 1
    files = [ln for ln in errors.splitlines() if ln.startswith("  File ")]
    assert [ln.partition('", ')[2] for ln in files] == [
        "line 6, in <module>",
        "line 5, in net",
    ]
    assert "BuildError: op elementwise_add: shapes" in errors
    _, _, whole = run(source, FLUIDX_FULL_TRACEBACK="1")
    assert "fluidx/ir/operator.py" in whole


def test_errors_of_functions_that_ops_call(run):
    source = HEAD + (
        "def mine(x):\n"
        "    raise KeyError('lost')\n"
        "block = fluid.default_main_program().current_block()\n"
        "out = block.create_var(name='o', dtype='float32', shape=[1])\n"
        "layers.py_func(mine, fluid.data('x', [1]), out)\n"
        "exe = fluid.Executor(fluid.CPUPlace())\n"
        "exe.run(feed={'x': np.ones(1, 'float32')})\n"
    )
    _, _, errors = run(source)
    assert "line 5, in mine" in errors
    assert "RunError: op py_func: KeyError: 'lost'" in errors
    assert "fluidx/" not in errors


def test_other_errors_inside_fluidx_say_where_the_rest_is(run):
    _, _, errors = run(HEAD + "fluid.get_flags(3)\n")
    assert "TypeError: get_flags takes a name" in errors
    assert "fluidx/" not in errors
    last = errors.splitlines()[-1]
    assert last.startswith("fluidx run: raised inside fluidx; FLUIDX_FULL_TRACEBACK=1")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("import cPickle", "cPickle: Python 2 had it; import pickle"),
        ("print 'hello'", "this is Python 2; convert it first"),
        ("try:\n    pass\nexcept ValueError, e:\n    pass", "this is Python 2"),
        ("for i in xrange(3): pass", "xrange is Python 2; use range"),
        ("{}.iteritems()", "drop the `iter`"),
        ("{}.has_key(1)", "write `key in dict`"),
        ("(i for i in []).next()", "use next(generator)"),
        ("np.array([[1], [1, 2]])", "give dtype=object"),
        ("float(np.ones((1, 1)))", "take array.item()"),
        ("open('script.py', 'rU')", "leave the U out"),
        ("fluid", ""),
    ],
)
def test_hints(line, told):
    if "rU" in line and sys.version_info < (3, 11):
        told = ""  # still taken there
    if "float(" in line and NumpyVersion(np.__version__) < "2.4.0":
        told = ""
    try:
        exec(compile(line, "script.py", "exec"), {"np": np})
    except Exception as error:
        hint = hints.hint(error)
    else:
        hint = ""
    assert told in hint
    assert bool(hint) == bool(told)


def test_hints_stand_below_the_error(run):
    _, _, errors = run("print 'hello'\n")
    assert "SyntaxError: " in errors.splitlines()[-2]
    assert errors.splitlines()[-1].startswith("fluidx run: hint: this is Python 2;")


def test_hints_for_modules(monkeypatch):
    monkeypatch.setattr(hints, "_is_there", lambda name: name == "distutils")
    assert hints.module_hint("distutils.nothing") == ""
    assert hints.module_hint("nothing.known") == ""
    monkeypatch.setattr(hints, "_is_there", lambda name: False)
    assert "setuptools brings it back" in hints.module_hint("distutils.util")
    error = ModuleNotFoundError("No module named 'imp'", name="imp")
    assert hints.hint(error) == "imp: Python 3.12 dropped it; use importlib"


def test_truth_values_without_distutils(monkeypatch):
    for name in ("distutils", "distutils.util"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    there = old_names.importlib.util.find_spec
    monkeypatch.setattr(
        old_names.importlib.util,
        "find_spec",
        lambda name: None if name == "distutils" else there(name),
    )
    old_names.restore()
    made = sys.modules.pop("distutils.util")
    assert sys.modules.pop("distutils").util is made
    assert [made.strtobool(w) for w in ("Yes", "1", "off", "F")] == [1, 1, 0, 0]
    with pytest.raises(ValueError, match="invalid truth value 'maybe'"):
        made.strtobool("maybe")


def test_old_names_can_be_left_out(run):
    source = "import numpy as np\nprint(np.float)\n"
    assert run(source)[1] == "<class 'float'>\n"
    returned, _, errors = run(source, flags=["--no-old-names"])
    assert returned == 1
    assert "`fluidx run` restores the usual ones" in errors


def test_old_names_come_without_warnings(run):
    source = (
        "import warnings; warnings.simplefilter('error')\n"
        "import numpy as np, threading, base64, os, time, collections, inspect\n"
        "np.zeros(2, np.float) + np.zeros(2, np.int) + np.zeros(2, np.bool)\n"
        "assert np.find_common_type([np.float32], [np.float64]) == np.float64\n"
        "assert np.rank(np.ones((2, 3))) == 2 and np.alen([1, 2]) == 2\n"
        "assert base64.decodestring(base64.encodestring(b'a')) == b'a'\n"
        "assert os.errno.ENOENT == 2 and not threading.Thread().isAlive()\n"
        "assert time.clock() >= 0 and collections.Mapping\n"
    )
    assert run(source) == (0, "", "")

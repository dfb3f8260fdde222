"""The names of ``paddle``, and what happens with those that are not there."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys

import pytest

import fluidx
from fluidx import compat


def python(code, *flags, cwd=None, **env):
    done = subprocess.run(
        [sys.executable, *flags, *(["-c", code] if code else [])],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **env},
        timeout=60,
    )
    return done.returncode, done.stdout.strip(), done.stderr


@pytest.mark.parametrize(
    ("name", "real"),
    [
        ("paddle.fluid", "fluidx"),
        ("paddle.fluid.layers", "fluidx.layers"),
        ("paddle.fluid.layers.nn", "fluidx.layers.nn"),
        ("paddle.fluid.core", "fluidx.core"),
        ("paddle.fluid.unique_name", "fluidx.ir.names"),
        ("paddle.fluid.transpiler.ps_dispatcher", "fluidx.transpiler.ps_dispatcher"),
        ("paddle.fluid.incubate.fleet.collective", "fluidx.incubate.fleet.collective"),
        ("paddle.fluid.dataset", "fluidx.dataset_factory"),
        ("paddle.reader", "fluidx.reader"),
        ("paddle.distributed.launch", "fluidx.distributed.launch"),
    ],
)
def test_modules_are_the_same_objects(paddle, name, real):
    assert importlib.import_module(name) is importlib.import_module(real)
    assert importlib.import_module(real).__spec__.name == real


def test_the_usual_imports(paddle):
    import paddle.fluid as fluid
    from paddle.fluid import core, layers
    from paddle.fluid.layers.tensor import concat
    from paddle.fluid.optimizer import AdamOptimizer

    assert fluid is fluidx
    assert core.VarDesc.VarType.FP32 == 5
    assert concat is layers.concat is fluid.layers.tensor.concat
    assert issubclass(AdamOptimizer, fluid.optimizer.Adam.__mro__[1])
    assert paddle.__version__ == "1.8.5"


def test_layers_answer_under_every_module_of_the_reference(paddle):
    layers = importlib.import_module("paddle.fluid.layers")
    assert layers.nn.reduce_sum is layers.reduce_sum
    assert layers.loss.fc is layers.fc
    with pytest.raises(AttributeError, match=r"fluid\.layers\.nn has no 'nope'"):
        _ = layers.nn.nope


def test_batch_is_a_function_and_a_module(paddle):
    from paddle.batch import batch

    batches = list(paddle.batch(lambda: iter(range(5)), 2, drop_last=True)())
    assert batches == [[0, 1], [2, 3]]
    assert list(batch(lambda: iter(range(2)), 2)()) == [[0, 1]]


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("import paddle.fluid.dygraph", ImportError, "dygraph .* not part of fluidx"),
        ("from paddle.fluid import dygraph", ImportError, "dygraph .* not part"),
        ("from paddle.fluid.dygraph.nn import Conv2D", ImportError, "not part"),
        ("import paddle.fluid.contrib.slim", ImportError, r"slim\) is not part"),
        ("import paddle.nothing", ImportError, "no module 'paddle.nothing'"),
        ("from paddle.fluid import nothing", ImportError, "nothing"),
        ("from paddle.fluid.layers import nothing", ImportError, "nothing"),
        ("import paddle; paddle.nothing", AttributeError, "paddle.nothing"),
        ("import paddle.fluid as f; f.enable_dygraph", AttributeError, "not part"),
        ("import paddle.fluid as f; f.core.VarBase", AttributeError, "dygraph"),
        ("import paddle.fluid as f; f.nothing", AttributeError, "no 'nothing'"),
    ],
)
def test_what_is_not_there_says_so(paddle, statement, error, message):
    with pytest.raises(error, match=message):
        exec(statement, {})


def test_missing_names_can_be_asked_for(paddle):
    assert not hasattr(fluidx, "dygraph")
    assert getattr(fluidx, "save_dygraph", None) is None


def test_uninstall_forgets_all():
    compat.install_as_paddle(old_names=False)
    importlib.import_module("paddle.fluid.layers")
    compat.uninstall()
    assert not compat.installed()
    assert not [n for n in sys.modules if n.partition(".")[0] == "paddle"]
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("paddle")


# ---------------------------------------------------------------- a real paddle


@pytest.fixture
def real(tmp_path):
    (tmp_path / "paddle").mkdir()
    (tmp_path / "paddle" / "__init__.py").write_text("real = True\n")
    return {"PYTHONPATH": str(tmp_path)}


def test_a_real_paddle_is_not_replaced_unasked(real):
    code = "import fluidx.compat as c; c.install_as_paddle()"
    returned, _, errors = python(code, **real)
    assert returned == 1
    assert "ImportError: a PaddlePaddle is installed at" in errors
    code = (
        "import paddle, fluidx.compat as c; assert paddle.real\n"
        "c.install_as_paddle(replace=True)\n"
        "import paddle.fluid; print(paddle.fluid.__name__, hasattr(paddle, 'real'))"
    )
    assert python(code, **real)[:2] == (0, "fluidx False")


def test_run_warns_of_a_real_paddle(real, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import paddle; print(paddle.__version__)\n")
    returned, out, errors = python("", "-m", "fluidx", "run", str(script), **real)
    assert (returned, out) == (0, "1.8.5")
    assert "not the PaddlePaddle installed at" in errors


# ---------------------------------------------------------------- other processes


SPAWNING = """\
import multiprocessing as mp
import paddle.fluid as fluid

def work(number):
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.layers.fill_constant([1], "float32", number)
        exe = fluid.Executor(fluid.CPUPlace())
        return float(exe.run(fluid.default_main_program(), fetch_list=[x])[0])

if __name__ == "__main__":
    with mp.get_context("spawn").Pool(2) as pool:
        print(pool.map(work, [1, 2]))
"""


def test_spawned_processes_find_paddle(tmp_path):
    script = tmp_path / "spawning.py"
    script.write_text(SPAWNING)
    returned, out, errors = python("", "-m", "fluidx", "run", str(script))
    assert (returned, out) == (0, "[1.0, 2.0]"), errors


def test_started_processes_find_paddle(tmp_path):
    script = tmp_path / "starting.py"
    script.write_text(
        "import subprocess, sys\n"
        "code = 'import paddle.fluid as f; print(f.__name__)'\n"
        "subprocess.check_call([sys.executable, '-c', code])\n"
    )
    assert python("", "-m", "fluidx", "run", str(script))[:2] == (0, "fluidx")


def test_modules_of_paddle_run_with_m(tmp_path):
    returned, out, _ = python(
        "", "-m", "paddle.distributed.launch_ps", "--help", PYTHONPATH=compat.PATH
    )
    assert returned == 0
    assert "--worker_num" in out
    returned, out, _ = python(
        "", "-m", "fluidx", "run", "-m", "paddle.distributed.launch", "--help"
    )
    assert returned == 0
    assert "--selected_gpus" in out


def test_run_is_like_python(tmp_path):
    script = tmp_path / "script.py"
    (tmp_path / "beside.py").write_text("value = 7\n")
    script.write_text(
        "import sys, beside\nprint(__name__, __file__, sys.argv[1:], beside.value)\n"
        "raise SystemExit(3)\n"
    )
    command = ("-m", "fluidx", "run", str(script), "--rate", "1", "-x")
    returned, out, _ = python("", *command)
    assert returned == 3
    assert out == f"__main__ {script} ['--rate', '1', '-x'] 7"
    script.write_text("def f():\n    raise KeyError('mine')\nf()\n")
    returned, _, errors = python("", "-m", "fluidx", "run", str(script))
    assert returned == 1
    assert errors.endswith("KeyError: 'mine'\n")
    assert "cli" not in errors


# ---------------------------------------------------------------- old names


OLD = "import numpy, collections; print(numpy.float is float, collections.Iterable)"


def test_old_names_are_restored_unless_switched_off():
    install = "import fluidx.compat as c; c.install_as_paddle({}); "
    returned, out, _ = python(install.format("") + OLD)
    assert (returned, out) == (0, "True <class 'collections.abc.Iterable'>")
    assert python(install.format("old_names=False") + OLD)[0] == 1
    assert python(install.format("") + OLD, FLUIDX_OLD_NAMES="0")[0] == 1


def test_restored_names_mean_what_they_meant():
    code = (
        "from fluidx.compat import old_names as o; o.restore(); import numpy as np\n"
        "import inspect, fractions\n"
        "assert not o.missing()\n"
        "assert np.zeros(2, np.int).dtype == 'int64' and np.asscalar(np.ones(1)) == 1\n"
        "assert np.in1d([[1, 2], [3, 4]], [2]).tolist() == [0, 1, 0, 0]\n"
        "assert np.product([2, 3]) == 6 and np.asfarray([1]).dtype == 'float64'\n"
        "assert inspect.getargspec(lambda a, b=1: 0).args == ['a', 'b']\n"
        "assert fractions.gcd(4, 6) == 2 and np.bool(1) is np.True_\n"
    )
    returned, _, errors = python(code)
    assert returned == 0, errors


# ---------------------------------------------------------------- paddle.compat


def test_text_and_bytes(paddle):
    import paddle.compat as cpt

    held = [b"a", "b"]
    assert cpt.to_text(held, inplace=True) is held
    assert held == ["a", "b"]
    assert cpt.to_bytes({"k": {"v"}}) == {b"k": {b"v"}}
    assert cpt.to_text(3) == 3
    # the reference's: half away from zero
    assert [cpt.round(v) for v in (2.5, -2.5, 0.4)] == [3.0, -3.0, 0.0]
    assert cpt.round(-0.55, 1) == -0.6
    assert cpt.floor_division(7, 2) == 3
    assert cpt.get_exception_message(ValueError("x")) == "x"

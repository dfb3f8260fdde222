"""``fluidx check``: what it finds, and how it says so."""

from __future__ import annotations

import json
import re

import pytest

from fluidx.cli import main
from fluidx.compat.check import check, files_of

SCRIPT = """\
import numpy as np
import paddle.fluid as fluid
from paddle.fluid.layers import *
from paddle.fluid.contrib.slim import Compressor
L = fluid.layers
x = L.fc(input=1, sizes=3)
y = fluid.layers.softmaxx(x)
z = relu(x)
q = np.float(3) + float(np.array(z)) + np.float32(1)
w = fluid.layers.data('x', [3], 'float32', 0, 1, 2, 3, 4, 5)
helper = fluid.layer_helper.LayerHelper("a")
helper.append_op(type="relu")
helper.append_op(type="rleu")
fluid.CUDAPlace(0)
v = fluid.core.VarDesc.VarType.FP33
def net(data):
    return data.fc, fluid.layers.fc(data, size=3, act="relu")
for i in xrange(3):
    {}.iteritems()
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def found(report, status):
    return {(f.line, f.kind, f.name): f.note for f in report.of(status)}


def test_what_is_missing(script):
    missing = found(check(script), "missing")
    assert set(missing) == {
        (4, "name", "fluid.contrib.slim.Compressor"),
        (6, "name", "fluid.layers.fc(...)"),
        (7, "name", "fluid.layers.softmaxx"),
        (10, "name", "fluid.layers.data(...)"),
        (13, "op", "rleu"),
        (15, "name", "fluid.core.VarDesc.VarType.FP33"),
        (18, "python", "xrange"),
        (19, "python", ".iteritems"),
    }
    by_line = {line: note for (line, _, _), note in missing.items()}
    assert "slim) is not part of fluidx" in by_line[4]
    assert by_line[6] == "takes no argument sizes; did you mean size?"
    assert by_line[7].startswith("did you mean softmax")
    assert by_line[10] == "takes 7 positional arguments, given 9"
    assert "did you mean relu" in by_line[13]


def test_what_differs_and_how(script):
    differs = found(check(script), "differs")
    assert "CuPy" in differs[14, "name", "fluid.CUDAPlace"]
    assert "restores it" in differs[9, "numpy", "numpy.float"]
    assert "x.item()" in differs[9, "numpy", "float(numpy.array)"]
    assert len(differs) == 3


def test_what_works(script):
    works = found(check(script), "works")
    assert {(8, "name", "fluid.layers.relu"), (8, "op", "relu")} <= set(works)
    assert {(12, "op", "relu"), (17, "name", "fluid.layers.fc")} <= set(works)
    assert (11, "name", "fluid.layer_helper.LayerHelper") in works
    # attributes of other things are nobody's names
    assert not [name for _, _, name in works if name.endswith("data.fc")]


def test_names_of_the_script_itself_are_left_alone(tmp_path):
    path = tmp_path / "own.py"
    path.write_text(
        "from paddle.fluid.layers import *\n"
        "def xrange(n): return n\n"
        "def relu(x): return x\n"
        "relu(xrange(3))\n"
    )
    assert [f.name for f in check(path).findings] == ["fluid.layers"]


def test_nothing_is_run(tmp_path):
    path = tmp_path / "bomb.py"
    path.write_text("import paddle.fluid\nraise SystemExit('ran')\n")
    assert check(path).error == ""


def test_the_command(script, tmp_path, capsys):
    assert main(["check", str(script)]) == 1
    out = capsys.readouterr().out
    assert re.search(r"line 7 +missing  fluid\.layers\.softmaxx: did you mean", out)
    assert re.search(r"line 14 +differs  fluid\.CUDAPlace: runs on CuPy", out)
    assert "ops: fc" not in out
    assert "relu (8, 12)" in out
    good = tmp_path / "good.py"
    good.write_text("import paddle.fluid as fluid\nfluid.layers.fc\n")
    assert main(["check", str(good)]) == 0


def test_json(script, capsys):
    assert main(["check", "--json", str(script)]) == 1
    (report,) = json.loads(capsys.readouterr().out)["files"]
    assert report["file"] == str(script)
    assert report["counts"]["missing"] == 8
    first = report["findings"][0]
    assert first.keys() == {"line", "kind", "name", "status", "note"}
    assert (first["line"], first["name"], first["status"]) == (2, "fluid", "works")


def test_files_that_cannot_be_read(tmp_path, capsys):
    old = tmp_path / "python2.py"
    old.write_text("x = 1\nprint 'hello'\n")
    assert main(["check", str(old), str(tmp_path / "nowhere.py")]) == 2
    out = capsys.readouterr().out
    assert "line 2: not Python 3" in out
    assert "No such file" in out


def test_folders(tmp_path, capsys):
    (tmp_path / "a").mkdir()
    for name in ("b.py", "a/c.py", "a/d.txt"):
        (tmp_path / name).write_text("")
    assert files_of([str(tmp_path)]) == [tmp_path / "a" / "c.py", tmp_path / "b.py"]
    (tmp_path / "empty").mkdir()
    assert main(["check", str(tmp_path / "empty")]) == 2


def lines(tmp_path, source, *statuses):
    path = tmp_path / "lines.py"
    path.write_text(source)
    return [(f.line, f.name) for f in check(path).of(*statuses)]


def test_names_by_other_names(tmp_path):
    source = (
        "import paddle.fluid.layers as layers\n"
        "from paddle.fluid import layers as L\n"
        "import paddle.fluid.layers.nn as nn\n"
        "import paddle.fluid as fluid\n"
        "from paddle.fluid.layers import fc as full, conv2d\n"
        "F = fluid\n"
        "layers.nope1; L.nope2; nn.nope3; F.layers.nope4\n"
        "fluid.layers.nn.conv2d; layers.tensor.concat; nn.fc; full; conv2d\n"
        "full(1, 2, nope5=3)\n"
    )
    missing = lines(tmp_path, source, "missing")
    assert missing == [
        (7, "fluid.layers.nope1"),
        (7, "fluid.layers.nope2"),
        (7, "fluid.layers.nn.nope3"),
        (7, "fluid.layers.nope4"),
        (9, "fluid.layers.fc(...)"),
    ]


def test_names_in_strings(tmp_path):
    source = (
        "import paddle.fluid as fluid\n"
        "getattr(fluid.layers, 'relu')\n"
        "getattr(fluid.layers, 'nope')\n"
        "getattr(fluid.layers, 'nope', None)\n"
        "if hasattr(fluid, 'nope'): pass\n"
        "getattr(fluid.layers, name)\n"
    )
    assert lines(tmp_path, source, "missing") == [(3, "fluid.layers.nope")]
    assert (2, "fluid.layers.relu") in lines(tmp_path, source, "works")


def test_names_that_the_script_gives_to_other_things(tmp_path):
    source = (
        "import paddle.fluid as fluid\n"
        "from paddle.fluid import layers, io\n"
        "def f(layers, *, io=None): return layers.nope, io.nope\n"
        "g = lambda fluid: fluid.nope\n"
        "layers.nope\n"
        "io = open('x')\n"
        "io.nope\n"
        "io.save_params\n"
    )
    assert lines(tmp_path, source, "missing") == [(5, "fluid.layers.nope")]
    assert (8, "fluid.io.save_params") in lines(tmp_path, source, "works")


def test_what_numpy_and_python_dropped(tmp_path):
    source = (
        "import numpy as np, time\n"
        "from collections import Iterable, OrderedDict\n"
        "import collections, threading\n"
        "np.float, np.int32, np.product\n"
        "time.clock(), time.time(), collections.Mapping, collections.deque\n"
        "import cPickle, json\n"
        "from StringIO import StringIO\n"
        "import six; six.iteritems({}), {}.iterkeys()\n"
        "from . import cPickle\n"
    )
    assert lines(tmp_path, source, "differs") == [
        (2, "collections.Iterable"),
        (4, "numpy.float"),
        (4, "numpy.product"),
        (5, "time.clock"),
        (5, "collections.Mapping"),
    ]
    assert lines(tmp_path, source, "missing") == [
        (6, "cPickle"),
        (7, "StringIO"),
        (8, ".iterkeys"),
    ]


@pytest.mark.parametrize(
    ("source", "error"),
    [
        (b"x = 1\n  y\n", "line 2: not Python 3: unexpected indent"),
        (b"\xff\xfe\x00", "null bytes"),
        (b"import paddle\nx = paddle" + b".a" * 50_000, "nested too deeply"),
        (b"# coding: klingon\n", "unknown encoding"),
    ],
)
def test_sources_that_are_none(tmp_path, source, error):
    path = tmp_path / "odd.py"
    path.write_bytes(source)
    assert error in check(path).error


def test_sources_in_other_codings(tmp_path):
    path = tmp_path / "odd.py"
    text = b"import paddle.fluid as f\r\ns = '\xc4\xe3'\r\nf.layers.nope\r\n"
    path.write_bytes(b"# -*- coding: gbk -*-\r\n" + text)
    assert [(f.line, f.name) for f in check(path).missing] == [(4, "fluid.layers.nope")]
    path.write_bytes(b"\xef\xbb\xbfimport paddle.fluid as f\nf.nope\n")
    assert [(f.line, f.name) for f in check(path).missing] == [(2, "fluid.nope")]

"""Reading a user's script, and the commands `fluidx transpile` and `fluidx verify`."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import fluidx as fluid
from fluidx import compat
from fluidx.cli import main
from fluidx.cli.feeds import feed_function, random_feed
from fluidx.cli.scripts import ScriptError, capture
from fluidx.ir import Program
from fluidx.tensor import LoDTensor

DIGITS = Path(__file__).parents[2] / "examples" / "digits.py"

NET = """\
import os, sys
from pathlib import Path
import numpy as np
import fluidx as fluid

x = fluid.data("x", [None, 4])
y = fluid.data("y", [None, 1])
out = fluid.layers.fc(fluid.layers.fc(x, 200, act="tanh"), 1)
loss = fluid.layers.mean(fluid.layers.square_error_cost(out, y))
fluid.optimizer.SGD(0.1).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
"""
TRAIN = """\
for step in range(10):
    exe.run(feed={"x": np.full((6, 4), 2, "f4"), "y": np.ones((6, 1), "f4")},
            fetch_list=[loss])
Path("trained").touch()
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Writes a script; its folder is the current one."""
    monkeypatch.chdir(tmp_path)

    def write(*parts, name="train.py"):
        (tmp_path / name).write_text("".join(parts))
        return str(tmp_path / name)

    return write


# ------------------------------------------------------------------ capture


def test_it_stops_at_the_first_training_step(script):
    found = capture(script(NET, TRAIN))
    assert found.stopped == "Executor.run(), train.py:14"
    assert [op.type for op in found.main.global_block().ops][-1] == "sgd"
    assert sorted(p.name for p in found.main.all_parameters()) == [
        "fc_0.b_0", "fc_0.w_0", "fc_1.b_0", "fc_1.w_0",
    ]  # fmt: skip
    assert found.feed["x"].shape == (6, 4)
    assert not os.path.exists("trained")


def test_it_stops_at_transpile(script):
    found = capture(
        script(
            NET,
            "t = fluid.DistributeTranspiler()\n"
            "t.transpile(int(os.environ['PADDLE_TRAINER_ID']), trainers=2)\n"
            "Path('trained').touch()\n",
        )
    )
    assert found.stopped == "transpile(), train.py:14"
    assert not found.main._is_distributed
    assert not os.path.exists("trained")


def test_it_stops_at_the_end(script):
    found = capture(script(NET))
    assert found.stopped == "its end, train.py"


def test_it_runs_as_trainer_0_with_its_arguments(script):
    tell = (
        "import helper\n"
        "Path('told').write_text(repr([__name__, sys.argv[1:], "
        "os.environ['TRAINING_ROLE'], os.environ['PADDLE_TRAINERS_NUM'], helper.X]))\n"
    )
    script("X = 5\n", name="helper.py")
    kept = sys.argv, sys.modules["__main__"], dict(os.environ)
    capture(script(NET, tell), ["--epochs", "3"], workers=4)
    told = Path("told").read_text()
    assert told == repr(["__main__", ["--epochs", "3"], "TRAINER", "4", 5])
    assert (sys.argv, sys.modules["__main__"], dict(os.environ)) == kept


def test_programs_that_train_nothing_are_run(script):
    found = capture(
        script(
            NET,
            "test = fluid.default_main_program().clone(for_test=True)\n"
            "before, = exe.run(test, feed={'x': np.ones((1, 4), 'f4'),"
            " 'y': np.ones((1, 1), 'f4')}, fetch_list=[loss])\n"
            "Path('tested').write_text(str(before))\n",
            TRAIN,
        )
    )
    assert os.path.exists("tested")
    assert found.stopped.startswith("Executor.run()")


def test_a_guarded_program_finds_its_startup(script):
    text = NET.replace(
        "x = fluid.data", "m, s = fluid.Program(), fluid.Program()\n"
        "guard = fluid.program_guard(m, s)\nguard.__enter__()\nx = fluid.data"
    ).replace("fluid.default_startup_program()", "s")  # fmt: skip
    tail = "guard.__exit__(None, None, None)\nexe.run(m, feed={})\n"
    found = capture(script(text, tail))
    made = {n for op in found.startup.all_ops() for n in op.output_arg_names}
    assert {p.name for p in found.main.all_parameters()} <= made


def test_scripts_of_paddle_are_read_too(script):
    text = NET.replace("import fluidx as fluid", "import paddle.fluid as fluid")
    found = capture(script(text, TRAIN))
    assert isinstance(found.main, Program)
    assert found.stopped.startswith("Executor.run()")
    assert not compat.installed()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = = 1", "cannot read"),
        ("import sys\nsys.exit(3)", "ended with exit code 3"),
        ("a = 1\nb = a / 0\n", "failed at train.py:2: b = a / 0\n  ZeroDivisionError"),
        ("import fluidx", "updates no parameter"),
    ],
)
def test_scripts_that_cannot_be_read(script, text, message):
    with pytest.raises(ScriptError, match=re.escape(message)):
        capture(script(text))


def test_no_such_script():
    with pytest.raises(ScriptError, match=r"cannot read nowhere\.py"):
        capture("nowhere.py")


# ------------------------------------------------------------------ data


def test_data_the_script_feeds(script):
    found = capture(script(NET, TRAIN))
    feed_fn, told = feed_function(found, 3, 0)
    assert told.startswith("rows of the batch that the script feeds")
    assert feed_fn(0, 0, 2)["x"].tolist() == [[2.0] * 4] * 3


def test_data_by_the_scripts_function(script):
    own = "def fluidx_feed(step, trainer, trainers):\n    return {'x': step}\n"
    feed_fn, told = feed_function(capture(script(own, NET, TRAIN)), 3, 0)
    assert told == "the script's fluidx_feed"
    assert feed_fn(7, 0, 2) == {"x": 7}


def test_random_data_fits_the_declarations():
    word = fluid.data("word", [None, 1], "int64", lod_level=1)
    label = fluid.data("label", [None, 1], "int64")
    image = fluid.data("image", [None, 3, 5])
    fluid.data("unused", [None, 3])
    table = fluid.layers.embedding(word, [7, 4])
    fluid.layers.mean(table)
    guess = fluid.layers.fc(image, 9, act="softmax")
    fluid.layers.cross_entropy(guess, label)
    feed_fn = random_feed(fluid.default_main_program(), 50)
    feed = feed_fn(0, 1, 2)
    assert set(feed) == {"word", "label", "image"}
    assert feed["image"].shape == (50, 3, 5)
    assert feed["image"].dtype == np.float32
    assert -1 <= feed["image"].min() < -0.9 < 0.9 < feed["image"].max() < 1
    assert sorted(set(feed["label"].ravel())) == list(range(9))
    assert isinstance(feed["word"], LoDTensor)
    (lengths,) = feed["word"].recursive_sequence_lengths()
    assert len(lengths) == 50
    assert sum(lengths) == len(np.asarray(feed["word"]))
    assert sorted(set(np.asarray(feed["word"]).ravel())) == list(range(7))
    again, other = feed_fn(0, 1, 2), feed_fn(1, 1, 2)
    assert (again["image"] == feed["image"]).all()
    assert not (other["image"] == feed["image"]).all()


# ------------------------------------------------------------------ transpile


def test_transpile_writes_every_role(script, capsys):
    path = script(NET, TRAIN)
    code = main(["transpile", path, "--servers", "3", "--workers", "2", "--out", "o"])
    assert code == 0
    assert not os.path.exists("trained")
    roles = ["local", "trainer-0", "trainer-1", "pserver-0", "pserver-1", "pserver-2"]
    names = {
        f"{r}-{w}.{e}"
        for r in roles
        for w in ("main", "startup")
        for e in ("txt", "dot")
    }
    assert {p.name for p in Path("o").iterdir()} == names | {
        "cluster.txt", "cluster.dot", "cluster.html",
    }  # fmt: skip
    trainer = Program.from_text(Path("o/trainer-1-main.txt").read_text())
    types = [op.type for op in trainer.global_block().ops]
    assert types.count("send") == types.count("recv") == 4
    server = Program.from_text(Path("o/pserver-0-main.txt").read_text())
    assert server.global_block().ops[-1].type == "listen_and_serv"
    said = capsys.readouterr().out
    assert "Executor.run(), train.py:14; mode pserver" in said
    assert re.search(r"trainer-0 +[\d,]+ +[\d,]+", said)
    # 4 x 200 + 200 + 200 + 1 numbers each way
    assert "9,608" in said
    told = Path("o/cluster.txt").read_text()
    assert "messages in a step" in told
    assert "efficiency" in told
    data = re.search(r'id="data">(.*?)</script>', Path("o/cluster.html").read_text())
    assert len(json.loads(data[1])["roles"]) == 5


def test_options_and_script_arguments(script):
    tell = "Path('told').write_text(' '.join(sys.argv[1:]))\n"
    path = script(NET, tell)
    code = main(
        [
            *("transpile", "--mode", "async", path, "data", "--out", "o"),
            *("--no-slice", "--lr", "3", "--", "--mode", "mine"),
        ]
    )
    assert code == 0
    assert Path("told").read_text() == "data --lr 3 --mode mine"
    server = Program.from_text(Path("o/pserver-0-main.txt").read_text())
    assert server.global_block().ops[-1].attr("distributed_mode") == 2


@pytest.mark.parametrize(
    ("mode", "op"),
    [
        ("geo", "send"),
        ("half-async", "send_barrier"),
        ("grad-allreduce", "c_allreduce_sum"),
        ("local-sgd", "c_allreduce_sum"),
        ("local_sgd", "c_allreduce_sum"),
        ("nccl2", "sgd"),
    ],
)
def test_modes(script, mode, op):
    assert main(["transpile", script(NET), "--mode", mode, "--out", "o"]) == 0
    text = Path("o/trainer-0-main.txt").read_text()
    assert f" {op}(" in text


def test_errors_end_with_2(script, capsys):
    assert main(["transpile", script("import fluidx")]) == 2
    assert "updates no parameter" in capsys.readouterr().err
    assert main(["verify", "nowhere.py"]) == 2
    assert "cannot read nowhere.py" in capsys.readouterr().err
    with pytest.raises(SystemExit) as caught:
        main(["transpile", script(NET), "--mode", "magic"])
    assert caught.value.code == 2
    assert not os.path.exists("transpiled")


@pytest.mark.parametrize("command", ["transpile", "verify"])
def test_help_tells_the_modes(command, capsys):
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"])
    assert caught.value.code == 0
    said = capsys.readouterr().out
    for mode in (
        "pserver",
        "half-async",
        "geo",
        "nccl2",
        "grad-allreduce",
        "local-sgd",
    ):
        assert f"  {mode} " in said
    assert "Exit code" in said


# ------------------------------------------------------------------ verify


def test_verify_proves_and_runs(script, capsys):
    code = main(["verify", script(NET, TRAIN), "--servers", "2", "--workers", "3"])
    said = capsys.readouterr().out
    assert code == 0
    assert "proof  holds: 3 trainers, 2 servers, 24 messages per step" in said
    assert "run    the same" in said
    assert "data   rows of the batch that the script feeds" in said
    assert not os.path.exists("trained")


def test_verify_in_async(script, capsys):
    code = main(["verify", script(NET), "--mode", "async", "--steps", "2"])
    said = capsys.readouterr().out
    assert code == 0
    assert "all 6 orders of events" in said
    assert "data   random data" in said


def test_verify_finds_what_differs(script, capsys):
    # the loss is a sum: its gradient grows with the batch, and the mean's does not
    text = NET.replace("layers.mean(", "layers.reduce_sum(")
    code = main(["verify", script(text, TRAIN), "--steps", "1"])
    said = capsys.readouterr().out
    assert code == 1
    assert "proof  holds" in said
    assert "run    different" in said
    assert re.search(r"differs by [\d.e+-]+ in step 0", said)
    assert "train.py" in said


def test_verify_tells_what_is_refuted(script, capsys, monkeypatch):
    import fluidx.transpiler.roles as roles

    sound = roles.distribute

    def broken(*args, **more):
        made = sound(*args, **more)
        block = made.programs["trainer-0"]["main"].global_block()
        block.ops = [op for op in block.ops if op.type != "send_barrier"]
        return made

    monkeypatch.setattr("fluidx.cli.scripts.distribute", broken)
    assert main(["verify", script(NET), "--proof-only"]) == 1
    said = capsys.readouterr().out
    assert "proof  refuted" in said
    assert "trainer-0 main" in said
    assert "run " not in said


def test_verify_of_what_cannot_run(script, capsys):
    text = NET.replace('act="tanh"', 'act="tanh", name="a"')
    bad = "def fluidx_feed(step, trainer, trainers):\n    return {'x': [[1.0]]}\n"
    assert main(["verify", script(bad, text, TRAIN)]) == 2
    assert "run    failed" in capsys.readouterr().out


def test_digits_example(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["verify", str(DIGITS), "--steps", "2"]) == 0
    assert "transpile(), digits.py:" in capsys.readouterr().out

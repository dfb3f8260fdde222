"""Fleet scripts, unmodified, as clusters of processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fluidx as fluid

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples" / "fleet"
GOLDEN = HERE.parent / "golden" / "fleet"

pytestmark = pytest.mark.cluster


def fluidx(folder, *words, **env):
    done = subprocess.run(
        [sys.executable, "-m", "fluidx", "run", *map(str, words)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", **env},
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def cluster(folder, workers, servers, script, *words):
    """What each worker said, in lines."""
    launch = ["-m", "fluidx", "launch", "--workers", workers]
    launch += ["--servers", servers] if servers else ["--collective"]
    fluidx(folder, *launch, "--timeout", 90, script, *words)
    logs = [folder / "log" / f"trainer-{i}.log" for i in range(workers)]
    return [log.read_text().splitlines() for log in logs]


def losses(lines):
    found = (re.fullmatch(r"(?:step|epoch) \d+ loss (\S+)", line) for line in lines)
    return [float(m[1]) for m in found if m]


def test_ctr_trains_as_under_the_reference(tmp_path):
    said = cluster(tmp_path, 2, 2, EXAMPLES / "ctr.py")
    for number, lines in enumerate(said):
        wanted = (GOLDEN / f"ctr-{number}.txt").read_text().splitlines()
        np.testing.assert_allclose(losses(lines), losses(wanted), rtol=1e-5)
    assert said[0][-1] == "saved"
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor()
        program, feeds, _ = fluid.io.load_inference_model(
            str(tmp_path / "ctr_model"), exe
        )
    assert feeds == ["dense", "C0", "C1", "C2", "C3"]
    types = {op.type for op in program.global_block().ops}
    assert not {"send", "recv", "distributed_lookup_table"} & types


def test_geo_learns(tmp_path):
    for lines in cluster(tmp_path, 2, 2, EXAMPLES / "geo.py"):
        values = losses(lines)
        assert len(values) == 60
        assert np.mean(values[-5:]) < 0.75 * np.log(50)


def test_workers_without_servers_equal_one_process(tmp_path):
    pytest.importorskip("mpi4py", reason="collectives on CPUs go over MPI")
    said = cluster(tmp_path, 2, 0, EXAMPLES / "collective.py")
    one = fluidx(
        tmp_path,
        EXAMPLES / "collective.py",
        "--save",
        "alone",
        PADDLE_TRAINER_ENDPOINTS="127.0.0.1:6170",
    )
    mean = np.mean([losses(lines) for lines in said], axis=0)
    np.testing.assert_allclose(mean, losses(one.splitlines()), rtol=1e-5)
    checkpoint = "__paddle_fleet_checkpoint__.0"
    for folder in ("checkpoints", "alone"):
        assert (tmp_path / folder / checkpoint / "fleet_train_status").exists()


def test_a_saved_training_goes_on_with_other_servers(tmp_path):
    script = HERE / "fleet_saving.py"
    whole = cluster(tmp_path, 2, 2, script, "whole", 0, 7)
    first = cluster(tmp_path, 2, 2, script, "first", 0, 4)
    then = cluster(tmp_path, 2, 3, script, "then", 4, 7, "first/all")
    for all_of, begun, gone_on in zip(whole, first, then):
        wanted = losses(all_of)
        assert len(wanted) == 7
        np.testing.assert_allclose(losses(begun + gone_on), wanted, rtol=1e-5)
    files = {p.name for p in (tmp_path / "then/all").iterdir()}
    # the names that the reference saves
    for name in ("table", "w1", "b1", "w2", "b2"):
        kept = ("moment1_0", "moment2_0", "beta1_pow_acc_0", "beta2_pow_acc_0")
        assert {name, *(f"{name}_{k}" for k in kept)} <= files
    assert "@LR_DECAY_COUNTER@" in files
    assert {p.name for p in (tmp_path / "then/model").iterdir()} == {
        *("__model__", "table", "w1", "b1", "w2", "b2"),
    }


def test_every_sample_is_with_one_worker_after_a_global_shuffle(tmp_path):
    said = cluster(tmp_path, 3, 1, HERE / "shuffle_script.py", tmp_path)
    samples = [
        [int(line.split()[1]) for line in lines if line.startswith("sample")]
        for lines in said
    ]
    written = [1000 * w + i for w in range(3) for i in range(50 + 10 * w)]
    assert sorted(s for part in samples for s in part) == written
    # each worker has some of every worker's
    assert all({s // 1000 for s in part} == {0, 1, 2} for part in samples)
    for lines, part in zip(said, samples):
        assert lines[0] == f"sizes 180 {len(part)} 180"


def test_role_makers_meet(tmp_path):
    script = tmp_path / "roles.py"
    script.write_text(
        "import os\n"
        "import numpy as np\n"
        "from paddle.fluid.incubate.fleet.base import role_maker\n"
        "ends = ','.join('127.0.0.1:%d' % (7164 + i) for i in range(2))\n"
        "os.environ['PADDLE_TRAINER_ENDPOINTS'] = ends\n"
        "maker = role_maker.GeneralRoleMaker(path='unused')\n"
        "maker.generate_role()\n"
        "print(maker.all_gather(maker._get_rank()), maker._worker_gather('w'))\n"
        "total = np.zeros(2)\n"
        "own = np.array([1.0, maker._get_rank()])\n"
        "maker.all_reduce_worker(own, total, 'max')\n"
        "maker.barrier_worker()\n"
        "maker._barrier_server()\n"
        "maker.barrier_all()\n"
        "print(total.tolist(), maker.get_local_endpoint() in ends)\n"
    )
    said = cluster(tmp_path, 2, 2, script)
    assert said == [["[0, 1, 2, 3] ['w', 'w']", "[1.0, 1.0] True"]] * 2
    servers = [(tmp_path / "log" / f"pserver-{i}.log").read_text() for i in (0, 1)]
    assert servers == ["[0, 1, 2, 3] None\n[0.0, 0.0] False\n"] * 2

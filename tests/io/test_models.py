"""Models that the reference saved: predictions and further training agree."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fluidx as fluid
from fluidx import io, layers

MODELS = Path(__file__).parents[1] / "golden" / "models"
NAMES = ["mlp", "lenet"]
FORMS = [("infer_separate", None), ("infer_combined", "__params__")]
TOLERANCE = {"rtol": 1e-5, "atol": 1e-6}


@pytest.fixture
def exe():
    return fluid.Executor(fluid.CPUPlace())


def meta_of(name):
    return json.loads((MODELS / name / "meta.json").read_text())


def expected_of(name):
    with np.load(MODELS / name / "expected.npz") as data:
        found = dict(data)
    feeds = {k[5:]: v for k, v in found.items() if k.startswith("feed_")}
    return feeds, found


def build(name):
    """The program that the reference saved, built here; (program, test, loss, out)."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        if name == "mlp":
            x = fluid.data("x", [None, 8])
            y = fluid.data("y", [None, 1], "int64")
            p = layers.fc(layers.fc(x, 6, act="tanh"), 3, act="softmax")
            optimizer = fluid.optimizer.Adam(0.05)
        else:
            x = fluid.data("img", [None, 1, 12, 12])
            y = fluid.data("label", [None, 1], "int64")
            c = fluid.nets.simple_img_conv_pool(x, 4, 3, 2, 2, act="relu")
            c = layers.dropout(layers.batch_norm(c), 0.3)
            p = layers.fc(c, 5, act="softmax")
            optimizer = fluid.optimizer.Momentum(0.05, 0.9)
        loss = layers.mean(layers.cross_entropy(p, y))
        test = main.clone(for_test=True)
        optimizer.minimize(loss)
    return main, test, loss, p


@pytest.mark.parametrize(("form", "params"), FORMS)
@pytest.mark.parametrize("name", NAMES)
def test_prediction(exe, name, form, params):
    feeds, expected = expected_of(name)
    program, names, targets = io.load_inference_model(
        str(MODELS / name / form), exe, params_filename=params
    )
    assert names == meta_of(name)["feeds"]
    feed = {n: feeds[n] for n in names}
    (got,) = exe.run(program, feed=feed, fetch_list=targets)
    np.testing.assert_allclose(got, expected["prediction"], **TOLERANCE)


@pytest.mark.parametrize(("form", "params"), FORMS)
@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_saved_byte_for_byte(exe, name, form, params, tmp_path):
    folder = MODELS / name / form
    program, _, _ = io.load_inference_model(str(folder), exe, params_filename=params)
    io.save_persistables(exe, str(tmp_path), program, params)
    saved = {p.name for p in tmp_path.iterdir()}
    assert saved == {p.name for p in folder.iterdir()} - {"__model__"}
    for file in saved:
        assert (tmp_path / file).read_bytes() == (folder / file).read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_test_program_built_here(exe, name):
    main, test, loss, out = build(name)
    feeds, expected = expected_of(name)
    io.load_persistables(exe, str(MODELS / name / "persistables"), main)
    got = exe.run(test, feed=feeds, fetch_list=[out.name, loss.name])
    np.testing.assert_allclose(got[0], expected["prediction"], **TOLERANCE)
    np.testing.assert_allclose(got[1], expected["test_loss"], **TOLERANCE)


@pytest.mark.parametrize("name", NAMES)
def test_combined_parameters(exe, name):
    main, test, _, out = build(name)
    feeds, expected = expected_of(name)
    folder = str(MODELS / name / "params_combined")
    io.load_params(exe, folder, test, filename="params")
    feed = {n: feeds[n] for n in meta_of(name)["feeds"]}
    pruned = test._prune_with_input(list(feed), [out.name])
    (got,) = exe.run(pruned, feed=feed, fetch_list=[out.name])
    np.testing.assert_allclose(got, expected["prediction"], **TOLERANCE)


def train_on(exe, main, loss):
    feeds, expected = expected_of("mlp")
    steps = [
        exe.run(main, feed=feeds, fetch_list=[loss])[0][0]
        for _ in expected["next_losses"]
    ]
    np.testing.assert_allclose(steps, expected["next_losses"], **TOLERANCE)


def test_training_goes_on_from_persistables(exe):
    main, _, loss, _ = build("mlp")
    io.load_persistables(exe, str(MODELS / "mlp" / "persistables"), main)
    train_on(exe, main, loss.name)


def test_training_goes_on_from_a_checkpoint(exe):
    main, _, loss, _ = build("mlp")
    fluid.load(main, str(MODELS / "mlp" / "ckpt" / "model"), exe)
    train_on(exe, main, loss.name)


def test_training_goes_on_from_the_saved_program(exe):
    data = (MODELS / "mlp" / "ckpt" / "model.pdmodel").read_bytes()
    main = fluid.Program.parse_from_string(data)
    fluid.load(main, str(MODELS / "mlp" / "ckpt" / "model.pdparams"), exe)
    train_on(exe, main, meta_of("mlp")["loss"])


def test_training_goes_on_from_a_program_state(exe):
    main, _, loss, _ = build("mlp")
    io.load_persistables(exe, str(MODELS / "mlp" / "persistables"), main)
    state = io.load_program_state(str(MODELS / "mlp" / "ckpt" / "model"))
    for var in main.list_vars():
        if var.name in state:
            fluid.global_scope().find_var(var.name).value = np.zeros_like(
                state[var.name]
            )
    io.set_program_state(main, state)
    train_on(exe, main, loss.name)


def test_lenet_trains_on(exe):
    main, _, loss, _ = build("lenet")
    feeds, expected = expected_of("lenet")
    fluid.load(main, str(MODELS / "lenet" / "ckpt" / "model"), exe)
    losses = [exe.run(main, feed=feeds, fetch_list=[loss])[0][0] for _ in range(40)]
    assert np.mean(losses[-5:]) < 0.5 * expected["test_loss"][0]


@pytest.mark.parametrize("name", NAMES)
def test_checkpoints_are_saved_byte_for_byte(exe, name, tmp_path):
    main, _, _, _ = build(name)
    folder = MODELS / name / "ckpt"
    fluid.load(main, str(folder / "model"), exe)
    fluid.save(main, str(tmp_path / "model"))
    assert {p.name for p in tmp_path.iterdir()} == {p.name for p in folder.iterdir()}
    params = "model.pdparams"
    assert (tmp_path / params).read_bytes() == (folder / params).read_bytes()
    # what optimizers keep stands in the order in which they made it
    ours, theirs = (io.load_program_state(str(p / "model")) for p in (tmp_path, folder))
    assert set(ours) == set(theirs)
    for key, value in theirs.items():
        np.testing.assert_array_equal(ours[key], value)

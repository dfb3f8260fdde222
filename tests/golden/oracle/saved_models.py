"""Run under the reference: saves models, and the outputs that it computes for them.

    python saved_models.py mlp ../models/mlp

Per model: ``infer_separate`` and ``infer_combined`` (save_inference_model),
``persistables``, ``params_combined``, ``ckpt`` (fluid.save) and ``expected.npz``:
feeds, prediction and loss of the test program, and for ``mlp`` the next four losses
of training on. Dropout makes those of ``lenet`` random. The op_callstack attributes
of the files kept here were removed afterwards.
"""

import json
import os
import shutil
import sys

import numpy as np
import paddle.fluid as fluid

L = fluid.layers


def mlp(rng):
    x = fluid.data("x", [None, 8])
    y = fluid.data("y", [None, 1], "int64")
    p = L.fc(L.fc(x, 6, act="tanh"), 3, act="softmax")
    feed = {
        "x": rng.rand(5, 8).astype("f4"),
        "y": rng.randint(0, 3, (5, 1)).astype("i8"),
    }
    return [x, y], p, fluid.optimizer.Adam(0.05), feed


def lenet(rng):
    x = fluid.data("img", [None, 1, 12, 12])
    y = fluid.data("label", [None, 1], "int64")
    c = fluid.nets.simple_img_conv_pool(x, 4, 3, 2, 2, act="relu")
    p = L.fc(L.dropout(L.batch_norm(c), 0.3), 5, act="softmax")
    feed = {
        "img": rng.rand(4, 1, 12, 12).astype("f4"),
        "label": rng.randint(0, 5, (4, 1)).astype("i8"),
    }
    return [x, y], p, fluid.optimizer.Momentum(0.05, 0.9), feed


def main(name, out):
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    fluid.default_startup_program().random_seed = 3
    inputs, p, optimizer, feed = globals()[name](np.random.RandomState(7))
    loss = L.mean(L.cross_entropy(p, inputs[1]))
    test = fluid.default_main_program().clone(for_test=True)
    optimizer.minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())

    def step():
        return float(exe.run(feed=feed, fetch_list=[loss])[0][0])

    for _ in range(3):
        step()
    feeds = [inputs[0].name]
    io = fluid.io
    io.save_inference_model(out + "/infer_separate", feeds, [p], exe, test)
    io.save_inference_model(
        out + "/infer_combined", feeds, [p], exe, test, params_filename="__params__"
    )
    io.save_persistables(exe, out + "/persistables")
    io.save_params(exe, out + "/params_combined", filename="params")
    fluid.save(fluid.default_main_program(), out + "/ckpt/model")
    prediction, test_loss = exe.run(test, feed=feed, fetch_list=[p, loss])
    losses = [step() for _ in range(4)] if name == "mlp" else []
    np.savez(
        out + "/expected.npz",
        prediction=prediction,
        test_loss=test_loss,
        next_losses=np.array(losses),
        **{"feed_" + k: v for k, v in feed.items()},
    )
    facts = {
        "feeds": feeds,
        "label": inputs[1].name,
        "fetch": p.name,
        "loss": loss.name,
    }
    with open(out + "/meta.json", "w") as file:
        json.dump(facts, file, indent=1)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

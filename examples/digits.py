"""Handwritten digits on parameter servers: a plain fluid script.

    fluidx launch --workers 2 --servers 2 examples/digits.py
    python examples/digits.py                       # the same in one process

Every role runs this file. The environment says which one it is: TRAINING_ROLE,
PADDLE_TRAINER_ID, PADDLE_TRAINERS_NUM, PADDLE_PSERVERS_IP_PORT_LIST. Trainer i of n
takes every n-th row of each batch, so n trainers see in a step what one process sees.
"""

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np

import fluidx as fluid

BATCH = 64


def network():
    """64 pixels -> 256 -> 10 classes; returns (loss, accuracy).

    tanh, since it is smooth: with relu, a rounding difference that lands a unit on the
    other side of its kink grows over the steps (to 1e-3 after 400 of them).
    """
    image = fluid.data("image", [None, 64])
    label = fluid.data("label", [None, 1], dtype="int64")
    hidden = fluid.layers.fc(image, 256, act="tanh")
    prediction = fluid.layers.fc(hidden, 10, act="softmax")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(prediction, label))
    return loss, fluid.layers.accuracy(prediction, label)


def digits():
    """((images, labels) to train on, the same to test on): every fifth is a test."""
    from sklearn.datasets import load_digits  # servers do without

    images, labels = load_digits(return_X_y=True)
    images = (images / 16.0).astype("float32")
    labels = labels.astype("int64").reshape(-1, 1)
    test = np.arange(len(images)) % 5 == 0
    return (images[~test], labels[~test]), (images[test], labels[test])


def batches(data, epochs, rank=0, ranks=1):
    """This trainer's share of each batch, in an order that all trainers agree on."""
    images, labels = data
    order = np.random.RandomState(0)
    for epoch in range(epochs):
        shuffled = order.permutation(len(images))
        for start in range(0, len(images) - BATCH + 1, BATCH):
            mine = shuffled[start : start + BATCH][rank::ranks]
            yield epoch, {"image": images[mine], "label": labels[mine]}


def save(folder, name, program):
    """Keep a program as text, for reading."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.txt").write_text(program.to_text())


def parameters():
    """All trained values by name, as they are now."""
    scope = fluid.global_scope()
    names = [p.name for p in fluid.default_main_program().all_parameters()]
    return {n: np.array(scope.find_var(n).get_tensor()) for n in names}


def train(options, main, loss, accuracy, test_program, rank, ranks):
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    scope = fluid.global_scope()
    if options.start_from:
        for name, value in np.load(options.start_from).items():
            scope.find_var(name).get_tensor().set(value, fluid.CPUPlace())
    role = f"trainer-{rank}"
    np.savez(options.out / f"{role}-start.npz", **parameters())
    data, test_data = digits()
    steps, begin, last = 0, time.perf_counter(), -1
    for epoch, feed in batches(data, options.epochs, rank, ranks):
        (value,) = exe.run(main, feed=feed, fetch_list=[loss])
        steps += 1
        if epoch != last:
            last = epoch
            print(f"epoch {epoch + 1}/{options.epochs} loss {value[0]:.4f}", flush=True)
    seconds = time.perf_counter() - begin
    feed = {"image": test_data[0], "label": test_data[1]}
    (right,) = exe.run(test_program, feed=feed, fetch_list=[accuracy])
    exe.close()  # tells the servers that this trainer is done
    np.savez(options.out / f"{role}-end.npz", **parameters())
    print(f"test accuracy {right[0]:.4f}", flush=True)
    return {"accuracy": float(right[0]), "steps_per_second": steps / seconds}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("digits-out"))
    parser.add_argument("--start-from", help="an .npz with initial parameters")
    options = parser.parse_args()

    role = os.environ.get("TRAINING_ROLE", "LOCAL")
    rank = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
    ranks = int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))
    servers = os.environ.get("PADDLE_PSERVERS_IP_PORT_LIST", "")
    here = os.environ.get("PADDLE_CURRENT_ENDPOINT", "")

    main_program = fluid.default_main_program()
    startup_program = fluid.default_startup_program()
    main_program.random_seed = startup_program.random_seed = 1
    loss, accuracy = network()
    test_program = main_program.clone(for_test=True)
    fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)

    text = options.out / "programs"
    if role == "LOCAL":
        save(text, "local-main", main_program)
        save(text, "local-startup", startup_program)
        facts = train(options, main_program, loss, accuracy, test_program, 0, 1)
        name = "local"
    else:
        transpiler = fluid.DistributeTranspiler()
        transpiler.transpile(rank, pservers=servers, trainers=ranks)
        facts, name = {}, f"trainer-{rank}"
        if role == "PSERVER":
            name = f"pserver-{servers.split(',').index(here)}"
            program, startup = transpiler.get_pserver_programs(here)
            exe = fluid.Executor(fluid.CPUPlace())
            save(text, f"{name}-main", program)
            save(text, f"{name}-startup", startup)
            exe.run(startup)
            exe.run(program)  # serves until every trainer has closed
        else:
            program = transpiler.get_trainer_program()
            save(text, f"{name}-main", program)
            save(text, f"{name}-startup", startup_program)
            facts = train(options, program, loss, accuracy, test_program, rank, ranks)
        facts["traffic"] = fluid.distributed.stats()
    (options.out / f"{name}.json").write_text(json.dumps(facts))


if __name__ == "__main__":
    main()

"""PTB-style language model with truncated back-propagation through time."""


import argparse
import time

import lm_model
import numpy as np
import paddle.fluid as fluid


def parse_args():
    parser = argparse.ArgumentParser("lstm language model example.")
    parser.add_argument(
        "--rnn_model", type=str, default="static", help="rnn_model [static|padding]"
    )
    parser.add_argument("--max_epoch", type=int, default=2)
    parser.add_argument("--profile", action="store_true")
    return parser.parse_args()


class SmallConfig:
    init_scale = 0.1
    learning_rate = 1.0
    max_grad_norm = 0.5
    num_layers = 2
    num_steps = 5
    hidden_size = 8
    batch_size = 4
    vocab_size = 30
    epoch_start_decay = 1
    lr_decay = 0.5


def get_data_iter(raw_data, batch_size, num_steps):
    data_len = len(raw_data)
    raw_data = np.asarray(raw_data, dtype="int64")
    batch_len = data_len // batch_size
    data = raw_data[0 : batch_size * batch_len].reshape((batch_size, batch_len))
    epoch_size = (batch_len - 1) // num_steps
    for i in range(epoch_size):
        x = np.copy(data[:, i * num_steps : (i + 1) * num_steps])
        y = np.copy(data[:, i * num_steps + 1 : (i + 1) * num_steps + 1])
        yield (x.reshape((-1, num_steps, 1)), y.reshape((-1, 1)))


def corpus(length, vocab_size, seed):
    """Words that mostly follow on their predecessors."""
    rng = np.random.RandomState(seed)
    words = [0]
    for _ in range(length - 1):
        words.append((words[-1] + int(rng.rand() < 0.8)) % vocab_size)
    return words


def main():
    args = parse_args()
    config = SmallConfig()
    main_program = fluid.Program()
    startup_program = fluid.Program()
    with fluid.program_guard(main_program, startup_program):
        with fluid.unique_name.guard():
            loss, last_hidden, last_cell, _ = lm_model.lm_model(
                config.hidden_size,
                config.vocab_size,
                config.batch_size,
                num_layers=config.num_layers,
                num_steps=config.num_steps,
                init_scale=config.init_scale,
                rnn_model=args.rnn_model,
            )
            inference_program = main_program.clone(for_test=True)
            fluid.clip.set_gradient_clip(
                clip=fluid.clip.GradientClipByGlobalNorm(clip_norm=config.max_grad_norm)
            )
            learning_rate = fluid.layers.create_global_var(
                name="learning_rate",
                shape=[1],
                value=config.learning_rate,
                dtype="float32",
                persistable=True,
            )
            optimizer = fluid.optimizer.SGD(learning_rate=learning_rate)
            optimizer.minimize(loss)

    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(startup_program)
    rng = np.random.RandomState(123)
    for param in main_program.global_block().all_parameters():
        value = rng.uniform(-0.1, 0.1, param.shape).astype("float32")
        fluid.global_scope().find_var(param.name).get_tensor().set(value, place)

    def states():
        shape = (config.num_layers, config.batch_size, config.hidden_size)
        return np.zeros(shape, "float32"), np.zeros(shape, "float32")

    def run_epoch(program, data, lr=None):
        total_loss, iters = 0.0, 0
        init_hidden, init_cell = states()
        for batch in get_data_iter(data, config.batch_size, config.num_steps):
            feed = {
                "x": batch[0],
                "y": batch[1],
                "init_hidden": init_hidden,
                "init_cell": init_cell,
            }
            if lr is not None:
                feed["learning_rate"] = np.array([lr], dtype="float32")
            cost, init_hidden, init_cell = exe.run(
                program,
                feed=feed,
                fetch_list=[loss.name, last_hidden.name, last_cell.name],
            )
            total_loss += np.array(cost)[0]
            iters += config.num_steps
        return np.exp(total_loss / iters)

    train_data = corpus(150, config.vocab_size, seed=1)
    valid_data = corpus(60, config.vocab_size, seed=2)
    for epoch_id in range(args.max_epoch):
        start = time.time()
        new_lr = config.learning_rate * config.lr_decay ** max(
            epoch_id + 1 - config.epoch_start_decay, 0.0
        )
        ppl = run_epoch(main_program, train_data, new_lr)
        assert time.time() >= start
        print("epoch %d lr %.4f train ppl %.4f" % (epoch_id, new_lr, ppl))
        print("valid ppl: %.4f" % run_epoch(inference_program, valid_data))


if __name__ == "__main__":
    main()

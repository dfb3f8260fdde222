"""Translate a made-up language whose sentences are those of another, reversed."""

import argparse
import copy

import numpy as np
import paddle.fluid as fluid
from config import ModelHyperParams, TrainTaskConfig, merge_cfg_from_list
from model import transformer


def parse_args():
    parser = argparse.ArgumentParser("Training for Transformer.")
    parser.add_argument(
        "opts",
        help="See config.py for all options",
        default=None,
        nargs=argparse.REMAINDER,
    )
    args = parser.parse_args()
    merge_cfg_from_list(args.opts, [TrainTaskConfig, ModelHyperParams])
    return args


def pad_batch_data(insts, pad_idx, n_head, is_target=False, is_label=False):
    """Pad the instances to the max sequence length in batch, and generate the
    corresponding position data and attention bias."""
    max_len = max(len(inst) for inst in insts)
    inst_data = np.array([inst + [pad_idx] * (max_len - len(inst)) for inst in insts])
    if is_label:
        weight = np.array(
            [[1.0] * len(inst) + [0.0] * (max_len - len(inst)) for inst in insts]
        )
        return [
            inst_data.astype("int64").reshape([-1, 1]),
            weight.astype("float32").reshape([-1, 1]),
            max_len,
        ]
    pos = np.array(
        [list(range(len(inst))) + [0] * (max_len - len(inst)) for inst in insts]
    )
    if is_target:
        bias = np.ones((inst_data.shape[0], max_len, max_len))
        bias = np.triu(bias, 1).reshape([-1, 1, max_len, max_len])
        bias = np.tile(bias, [1, n_head, 1, 1]) * [-1e9]
    else:
        bias = np.array(
            [[0] * len(inst) + [-1e9] * (max_len - len(inst)) for inst in insts]
        )
        bias = np.tile(bias.reshape([-1, 1, 1, max_len]), [1, n_head, max_len, 1])
    return [
        inst_data.astype("int64"),
        pos.astype("int64"),
        bias.astype("float32"),
        max_len,
    ]


def prepare_train_input(insts, hp):
    src_word, src_pos, src_bias, src_len = pad_batch_data(
        [inst[0] for inst in insts], hp.eos_idx, hp.n_head
    )
    trg_word, trg_pos, trg_bias, trg_len = pad_batch_data(
        [inst[1] for inst in insts], hp.eos_idx, hp.n_head, is_target=True
    )
    trg_src_bias = np.tile(src_bias[:, :, ::src_len, :], [1, 1, trg_len, 1])
    lbl_word, lbl_weight, _ = pad_batch_data(
        [inst[2] for inst in insts], hp.eos_idx, hp.n_head, is_label=True
    )
    return [
        src_word,
        src_pos,
        src_bias,
        trg_word,
        trg_pos,
        trg_bias,
        trg_src_bias.astype("float32"),
        lbl_word,
        lbl_weight,
    ]


def batches(hp, count, batch_size, seed):
    rng = np.random.RandomState(seed)
    for _ in range(count):
        insts = []
        for _ in range(batch_size):
            words = rng.randint(3, hp.src_vocab_size, rng.randint(3, 8)).tolist()
            back = copy.copy(words)[::-1]
            insts.append(
                (words + [hp.eos_idx], [hp.bos_idx] + back, back + [hp.eos_idx])
            )
        yield prepare_train_input(insts, hp)


def make_inputs(hp):
    def data(name, shape, dtype):
        return fluid.data(name=name, shape=shape, dtype=dtype)

    return [
        data("src_word", [None, None], "int64"),
        data("src_pos", [None, None], "int64"),
        data("src_slf_attn_bias", [None, hp.n_head, None, None], "float32"),
        data("trg_word", [None, None], "int64"),
        data("trg_pos", [None, None], "int64"),
        data("trg_slf_attn_bias", [None, hp.n_head, None, None], "float32"),
        data("trg_src_attn_bias", [None, hp.n_head, None, None], "float32"),
        data("lbl_word", [None, 1], "int64"),
        data("lbl_weight", [None, 1], "float32"),
    ]


def main():
    parse_args()
    hp, task = ModelHyperParams, TrainTaskConfig
    train_prog, startup_prog = fluid.Program(), fluid.Program()
    with fluid.program_guard(train_prog, startup_prog), fluid.unique_name.guard():
        inputs = make_inputs(hp)
        loader = fluid.io.DataLoader.from_generator(
            feed_list=inputs, capacity=4, iterable=False
        )
        sum_cost, avg_cost, predict, token_num = transformer(
            inputs, hp, task.label_smooth_eps
        )
        test_prog = train_prog.clone(for_test=True)
        lr_decay = fluid.layers.learning_rate_scheduler.noam_decay(
            hp.d_model, task.warmup_steps
        )
        learning_rate = lr_decay * task.learning_rate
        optimizer = fluid.optimizer.Adam(
            learning_rate=learning_rate,
            beta1=task.beta1,
            beta2=task.beta2,
            epsilon=float(task.eps),
        )
        optimizer.minimize(avg_cost)

    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(startup_prog)
    rng = np.random.RandomState(7)
    for param in train_prog.all_parameters():
        if param.trainable and len(param.shape) > 1:
            value = rng.randn(*param.shape) * param.shape[0] ** -0.5
            tensor = fluid.global_scope().find_var(param.name).get_tensor()
            tensor.set(value.astype("float32"), place)

    loss_normalizer = -(
        (1.0 - task.label_smooth_eps) * np.log(1.0 - task.label_smooth_eps)
        + task.label_smooth_eps
        * np.log(task.label_smooth_eps / (hp.trg_vocab_size - 1) + 1e-20)
    )
    loader.set_batch_generator(lambda: batches(hp, 4, task.batch_size, seed=3))
    step_idx = 0
    for pass_id in range(task.pass_num):
        loader.start()
        try:
            while True:
                outs = exe.run(
                    train_prog,
                    fetch_list=[sum_cost.name, token_num.name, learning_rate.name],
                )
                total_avg_cost = np.array(outs[0]).sum() / np.array(outs[1]).sum()
                print(
                    "step_idx: %d, avg loss: %f, normalized loss: %f, ppl: %f, "
                    "lr: %f"
                    % (
                        step_idx,
                        total_avg_cost,
                        total_avg_cost - loss_normalizer,
                        np.exp(min(total_avg_cost, 100)),
                        outs[2][0],
                    )
                )
                step_idx += 1
        except fluid.core.EOFException:
            loader.reset()
    loader.set_batch_generator(lambda: batches(hp, 2, task.batch_size, seed=8))
    for pass_id in range(2):
        loader.start()
        total = []
        try:
            while True:
                total.append(exe.run(test_prog, fetch_list=[avg_cost.name])[0])
        except fluid.core.EOFException:
            loader.reset()
        print("validation %d: %f" % (pass_id, np.mean(total)))


if __name__ == "__main__":
    main()

"""BERT pretraining on words that count, with a checkpoint in the middle."""


import argparse
import os
import shutil
import tempfile

import numpy as np
import paddle.fluid as fluid
from model.bert import BertConfig, BertModel
from optimization import optimization
from utils.args import ArgumentGroup, print_arguments
from utils.init import init_checkpoint, init_pretraining_params

# yapf: disable
parser = argparse.ArgumentParser(__doc__)
model_g = ArgumentGroup(parser, "model", "model configuration and paths.")
model_g.add_arg("weight_sharing", bool, True, "If set, share weights between word embedding and masked lm.")
train_g = ArgumentGroup(parser, "training", "training options.")
train_g.add_arg("learning_rate",   float, 0.01,  "Learning rate used to train with warmup.")
train_g.add_arg("lr_scheduler",    str,   "linear_warmup_decay", "scheduler of learning rate.", choices=['linear_warmup_decay', 'noam_decay'])
train_g.add_arg("num_train_steps", int,   8,     "Total steps to perform pretraining.")
train_g.add_arg("warmup_steps",    int,   3,     "Total steps to perform warmup when pretraining.")
train_g.add_arg("weight_decay",    float, 0.01,  "Weight decay rate if any.")
train_g.add_arg("save_steps",      int,   4,     "The steps interval to save checkpoints.")
train_g.add_arg("use_recompute",   bool,  False, "Whether to use recompute optimizer.")
train_g.add_arg("batch_size",      int,   4,     "Batch size.")
# yapf: enable

CONFIG = """
{"hidden_act": "gelu", "hidden_size": 16, "initializer_range": 0.02,
 "max_position_embeddings": 16, "num_attention_heads": 2, "num_hidden_layers": 2,
 "type_vocab_size": 2, "vocab_size": 50}
"""
SEQ_LEN = 8
PAD, CLS, SEP, MASK = 0, 1, 2, 3


def data_reader(batch_size, vocab_size, seed=0):
    rng = np.random.RandomState(seed)
    while True:
        src = np.zeros((batch_size, SEQ_LEN, 1), "int64")
        mask = np.zeros((batch_size, SEQ_LEN, 1), "float32")
        sent = np.zeros((batch_size, SEQ_LEN, 1), "int64")
        mask_label, mask_pos, labels = [], [], []
        for i in range(batch_size):
            length = rng.randint(5, SEQ_LEN + 1)
            start = rng.randint(4, vocab_size - SEQ_LEN)
            src[i, :length, 0] = np.arange(start, start + length)
            src[i, 0, 0], src[i, length - 1, 0] = CLS, SEP
            mask[i, :length] = 1.0
            sent[i, length // 2 : length] = 1
            where = rng.randint(1, length - 1)
            mask_label.append(src[i, where, 0])
            mask_pos.append(i * SEQ_LEN + where)
            src[i, where, 0] = MASK
            labels.append(int(start % 2))
        pos = np.tile(np.arange(SEQ_LEN).reshape(1, -1, 1), (batch_size, 1, 1))
        yield [
            src,
            pos.astype("int64"),
            sent,
            mask,
            np.array(mask_label, "int64").reshape(-1, 1),
            np.array(mask_pos, "int64").reshape(-1, 1),
            np.array(labels, "int64").reshape(-1, 1),
        ]


def create_model(bert_config, args):
    input_fields = {
        "names": [
            "src_ids",
            "pos_ids",
            "sent_ids",
            "input_mask",
            "mask_label",
            "mask_pos",
            "labels",
        ],
        "shapes": [
            [-1, SEQ_LEN, 1],
            [-1, SEQ_LEN, 1],
            [-1, SEQ_LEN, 1],
            [-1, SEQ_LEN, 1],
            [-1, 1],
            [-1, 1],
            [-1, 1],
        ],
        "dtypes": ["int64", "int64", "int64", "float32", "int64", "int64", "int64"],
        "lod_levels": [0, 0, 0, 0, 0, 0, 0],
    }
    inputs = [
        fluid.data(
            name=input_fields["names"][i],
            shape=input_fields["shapes"][i],
            dtype=input_fields["dtypes"][i],
            lod_level=input_fields["lod_levels"][i],
        )
        for i in range(len(input_fields["names"]))
    ]
    (src_ids, pos_ids, sent_ids, input_mask, mask_label, mask_pos, labels) = inputs
    data_loader = fluid.io.DataLoader.from_generator(
        feed_list=inputs, capacity=50, iterable=False
    )
    bert = BertModel(
        src_ids,
        pos_ids,
        sent_ids,
        input_mask,
        bert_config,
        weight_sharing=args.weight_sharing,
    )
    next_sent_acc, mask_lm_loss, total_loss = bert.get_pretraining_output(
        mask_label, mask_pos, labels
    )
    return data_loader, next_sent_acc, mask_lm_loss, total_loss, bert.checkpoints


def train(args):
    bert_config = BertConfig(CONFIG)
    train_program, startup_prog = fluid.Program(), fluid.Program()
    with fluid.program_guard(train_program, startup_prog):
        with fluid.unique_name.guard():
            loader, next_sent_acc, mask_lm_loss, total_loss, checkpoints = create_model(
                bert_config, args
            )
            scheduled_lr = optimization(
                loss=total_loss,
                warmup_steps=args.warmup_steps,
                num_train_steps=args.num_train_steps,
                learning_rate=args.learning_rate,
                train_program=train_program,
                weight_decay=args.weight_decay,
                scheduler=args.lr_scheduler,
                checkpoints=checkpoints if args.use_recompute else None,
            )

    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(startup_prog)

    folder = tempfile.mkdtemp()
    pretrained = os.path.join(folder, "params")
    os.makedirs(pretrained)
    rng = np.random.RandomState(5)
    for param in train_program.global_block().all_parameters():
        if len(param.shape) > 1:
            value = (0.1 * rng.randn(*param.shape)).astype("float32")
            fluid.global_scope().find_var(param.name).get_tensor().set(value, place)
    fluid.io.save_params(exe, pretrained, main_program=train_program)
    exe.run(startup_prog)
    init_pretraining_params(exe, pretrained, train_program)

    exec_strategy = fluid.ExecutionStrategy()
    exec_strategy.num_threads = 1
    train_exe = fluid.ParallelExecutor(
        use_cuda=False,
        loss_name=total_loss.name,
        exec_strategy=exec_strategy,
        main_program=train_program,
    )

    loader.set_batch_generator(
        lambda: data_reader(args.batch_size, bert_config["vocab_size"])
    )
    loader.start()
    steps = 0
    saved = os.path.join(folder, "step_%d" % args.save_steps)
    while steps < args.num_train_steps:
        steps += 1
        acc, lm_cost, loss, np_lr = train_exe.run(
            fetch_list=[
                next_sent_acc.name,
                mask_lm_loss.name,
                total_loss.name,
                scheduled_lr.name,
            ]
        )
        print(
            "step %d, lr %f, loss %f, ppl %f, next_sent_acc %f"
            % (steps, np_lr[0], np.mean(loss), np.exp(np.mean(lm_cost)), np.mean(acc))
        )
        if steps == args.save_steps:
            fluid.io.save_persistables(exe, saved, train_program)
    loader.reset()

    init_checkpoint(exe, saved, train_program)
    loader.set_batch_generator(
        lambda: data_reader(args.batch_size, bert_config["vocab_size"], seed=1)
    )
    loader.start()
    for _ in range(2):
        loss, np_lr = train_exe.run(fetch_list=[total_loss.name, scheduled_lr.name])
        print("resumed, lr %f, loss %f" % (np_lr[0], np.mean(loss)))
    loader.reset()
    shutil.rmtree(folder)


if __name__ == "__main__":
    args = parser.parse_args()
    print_arguments(args)
    train(args)

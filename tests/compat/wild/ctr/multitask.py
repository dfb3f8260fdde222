"""MMoE and ESMM: several experts, gates, and two tasks with an auc each."""
from __future__ import print_function
import argparse

import numpy as np
import paddle.fluid as fluid

expert_num, gate_num, expert_size, tower_size = 3, 2, 6, 4


def mmoe(inputs):
    expert_outputs = []
    for i in range(0, expert_num):
        expert_output = fluid.layers.fc(
            input=inputs, size=expert_size, act='relu', name='expert_' + str(i))
        expert_outputs.append(expert_output)
    expert_concat = fluid.layers.concat(expert_outputs, axis=1)
    expert_concat = fluid.layers.reshape(expert_concat, [-1, expert_num, expert_size])
    output_layers = []
    for i in range(0, gate_num):
        cur_gate = fluid.layers.fc(
            input=inputs, size=expert_num, act='softmax', name='gate_' + str(i))
        cur_gate_expert = fluid.layers.elementwise_mul(expert_concat, cur_gate, axis=0)
        cur_gate_expert = fluid.layers.reduce_sum(cur_gate_expert, dim=1)
        cur_tower = fluid.layers.fc(
            input=cur_gate_expert, size=tower_size, act='relu', name='tower_' + str(i))
        out = fluid.layers.fc(
            input=cur_tower, size=2, act='softmax', name='out_' + str(i))
        output_layers.append(fluid.layers.clip(out, min=1e-15, max=1.0 - 1e-15))
    return output_layers


def esmm(inputs):
    ctr = fluid.layers.fc(fluid.layers.fc(inputs, 8, act='relu'), 2, act='softmax')
    cvr = fluid.layers.fc(fluid.layers.fc(inputs, 8, act='relu'), 2, act='softmax')
    ctr_one = fluid.layers.slice(ctr, axes=[1], starts=[1], ends=[2])
    cvr_one = fluid.layers.slice(cvr, axes=[1], starts=[1], ends=[2])
    both_one = ctr_one * cvr_one
    both = fluid.layers.concat([1 - both_one, both_one], axis=1)
    return [ctr, both]


def main(args):
    inputs = fluid.data(name="input", shape=[-1, 5], dtype="float32")
    labels = [fluid.data(name="label_" + c, shape=[-1, 1], dtype="int64") for c in "ab"]
    outs = mmoe(inputs) if args.net == 'mmoe' else esmm(inputs)
    costs = [
        fluid.layers.cross_entropy(outs[0], fluid.layers.one_hot(labels[0], 2),
                                   soft_label=True),
        fluid.layers.cross_entropy(outs[1], labels[1])]
    aucs = [fluid.layers.auc(input=o, label=l)[:2] for o, l in zip(outs, labels)]
    avg = [fluid.layers.mean(x=c) for c in costs]
    loss = fluid.layers.elementwise_add(avg[0], avg[1])
    fluid.optimizer.AdamOptimizer(learning_rate=0.02).minimize(loss)

    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    rng = np.random.RandomState(5)
    block = fluid.default_main_program().global_block()
    for name in sorted(v for v in block.vars if v.endswith('.w_0')):
        fluid.global_scope().find_var(name).get_tensor().set(
            rng.uniform(-.5, .5, block.var(name).shape).astype(np.float32),
            fluid.CPUPlace())
    average = [fluid.average.WeightedAverage() for _ in range(2)]
    metric = fluid.metrics.Auc(name='auc', curve='ROC', num_thresholds=255)
    for step in range(8):
        x = rng.rand(12, 5).astype('float32')
        a = (x[:, :1] + x[:, 1:2] > 1).astype('int64')
        b = a * (x[:, 2:3] > 0.5).astype('int64')
        res = exe.run(feed={"input": x, "label_a": a, "label_b": b},
                      fetch_list=avg + [outs[0]] + [v for pair in aucs for v in pair])
        for keeper, value in zip(average, res):
            keeper.add(value=value, weight=len(x))
        metric.update(preds=res[2], labels=a)
        print('step %d %.6f %.6f auc %.5f %.5f batch %.5f %.5f' % (
            (step, ) + tuple(float(res[i]) for i in (0, 1, 3, 5, 4, 6))))
    print('average %.6f %.6f' % tuple(float(k.eval()) for k in average))
    print('auc of numpy %.5f' % metric.eval())


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--net', default='mmoe')
    main(parser.parse_args())

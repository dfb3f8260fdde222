"""Print what each learning rate schedule gives, and train a little with each."""
import numpy as np
import paddle.fluid as fluid
import paddle.fluid.layers as layers

STEPS = 7


def step_each(step_size, gamma, lr):
    """A schedule of one's own: a Switch on the step counter."""
    step = layers.learning_rate_scheduler._decay_step_counter()
    rate = layers.create_global_var([1], lr, 'float32', persistable=True, name='my_rate')
    with layers.Switch() as switch:
        with switch.case(step < float(step_size)):
            layers.assign(layers.fill_constant([1], 'float32', lr), rate)
        with switch.case(step < float(2 * step_size)):
            layers.assign(layers.fill_constant([1], 'float32', lr * gamma), rate)
        with switch.default():
            layers.assign(layers.fill_constant([1], 'float32', lr * gamma**2), rate)
    return rate


def warm_cosine(lr, warm, total):
    step = layers.autoincreased_step_counter(counter_name='@MY_STEPS@', begin=1)
    step = layers.cast(step, 'float32')
    warm_rate = lr * step / float(warm)
    cosine = 0.5 * lr * (layers.cos((step - warm) * (np.pi / (total - warm))) + 1.0)
    return layers.cond(layers.less_than(step, layers.fill_constant([1], 'float32', warm)),
                       lambda: warm_rate, lambda: cosine)


SCHEDULES = [
    ('fixed', lambda: 0.1),
    ('noam', lambda: layers.noam_decay(8, 3, learning_rate=0.5)),
    ('exponential', lambda: layers.exponential_decay(0.1, 2, 0.5)),
    ('staircase', lambda: layers.exponential_decay(0.1, 2, 0.5, staircase=True)),
    ('natural_exp', lambda: layers.natural_exp_decay(0.1, 3, 0.5, staircase=True)),
    ('inverse_time', lambda: layers.inverse_time_decay(0.1, 2, 0.5)),
    ('polynomial', lambda: layers.polynomial_decay(0.1, 4, 0.01, power=2.0)),
    ('cycle', lambda: layers.polynomial_decay(0.1, 3, 0.01, power=1.0, cycle=True)),
    ('piecewise', lambda: layers.piecewise_decay([2, 4], [0.1, 0.05, 0.01])),
    ('cosine', lambda: layers.cosine_decay(0.1, 2, 4)),
    ('warmup', lambda: layers.linear_lr_warmup(
        layers.cosine_decay(0.1, 2, 4), warmup_steps=3, start_lr=0.0, end_lr=0.1)),
    ('switch', lambda: step_each(2, 0.1, 0.1)),
    ('cond', lambda: warm_cosine(0.1, 3, STEPS)),
]


def main():
    exe = fluid.Executor(fluid.CPUPlace())
    for name, make in SCHEDULES:
        main_prog, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main_prog, startup):
            with fluid.unique_name.guard(name + '/'):
                x = fluid.data('x', shape=[4, 3], dtype='float32')
                w = layers.create_parameter(
                    [3, 1], 'float32', attr=fluid.ParamAttr(
                        initializer=fluid.initializer.Constant(0.5)))
                loss = layers.reduce_mean(layers.square(layers.mul(x, w) - 1.0))
                optimizer = fluid.optimizer.SGD(learning_rate=make())
                optimizer.minimize(loss)
                rate = optimizer._global_learning_rate()
        with fluid.scope_guard(fluid.core.Scope()):
            exe.run(startup)
            rates, losses = [], []
            for i in range(STEPS):
                feed = {'x': np.full((4, 3), 0.5 + 0.1 * i, dtype='float32')}
                a, b = exe.run(main_prog, feed=feed, fetch_list=[rate, loss])
                rates.append('%.6f' % a[0])
                losses.append(b[0])
            print('%-14s %s loss %.6f' % (name, ' '.join(rates), np.sum(losses)))


if __name__ == '__main__':
    main()

# A denoising convolutional autoencoder, float16 where it is asked for.
from __future__ import print_function
import argparse

import numpy as np
import paddle.fluid as fluid
from paddle.fluid.contrib import mixed_precision

parser = argparse.ArgumentParser()
parser.add_argument('--amp', action='store_true', help='train in mixed precision')
args = parser.parse_args()


def encoder(x):
    x = fluid.layers.conv2d(x, 6, 3, stride=2, padding=1, act='elu', name='e1')
    x = fluid.layers.conv2d(x, 8, 3, stride=2, padding=[1, 1], act='elu', name='e2')
    return fluid.layers.fc(x, 5, act='hard_sigmoid', name='code')


def decoder(code):
    x = fluid.layers.fc(code, 8 * 3 * 3, name='d0')
    x = fluid.layers.reshape(x, shape=(-1, 8, 3, 3))
    x = fluid.layers.conv2d_transpose(
        x, 6, filter_size=4, stride=2, padding=1, act='relu6', name='d1')
    x = fluid.layers.conv2d_transpose(
        x, 1, output_size=12, filter_size=4, stride=2, padding=1, name='d2')
    return fluid.layers.sigmoid(x)


clean = fluid.data(name='clean', shape=[None, 1, 12, 12], dtype='float32')
noisy = fluid.data(name='noisy', shape=[None, 1, 12, 12], dtype='float32')
code = encoder(noisy)
made = decoder(code)
sparsity = fluid.layers.kldiv_loss(
    fluid.layers.log(fluid.layers.reduce_mean(code, dim=0, keep_dim=True)),
    fluid.layers.fill_constant([1, 5], 'float32', 0.3), reduction='batchmean')
loss = fluid.layers.mse_loss(made, clean) + 0.001 * sparsity
test_program = fluid.default_main_program().clone(for_test=True)
optimizer = fluid.optimizer.Momentum(
    fluid.layers.natural_exp_decay(0.5, 4, 0.1), 0.9, use_nesterov=True,
    regularization=fluid.regularizer.L2DecayRegularizer(1e-4))
if args.amp:
    optimizer = mixed_precision.decorate(
        optimizer, init_loss_scaling=8.0, use_dynamic_loss_scaling=True,
        incr_every_n_steps=3)
optimizer.minimize(loss)

place = fluid.CPUPlace()
exe = fluid.Executor(place)
exe.run(fluid.default_startup_program())
rng = np.random.RandomState(14)
scope = fluid.global_scope()
for p in fluid.default_main_program().global_block().all_parameters():
    w = rng.uniform(-0.25, 0.25, p.shape) if p.name.endswith('w_0') else np.zeros(p.shape)
    scope.find_var(p.name).get_tensor().set(w.astype('float32'), place)


def batch():
    grid = np.mgrid[:12, :12] / 12.
    freq = rng.randint(1, 4, (6, 1, 1, 1))
    x = 0.5 + 0.5 * np.sin(freq * 6.28 * grid[None, :1])
    return x.astype('float32'), (x + 0.2 * rng.randn(*x.shape)).astype('float32')


total, count = 0., 0
for step in range(8):
    x, z = batch()
    value, = exe.run(feed={'clean': x, 'noisy': z}, fetch_list=[loss])
    total += value
    count += 1
    print('step %d loss %.6f mean so far %.6f' % (step, value, total / count))
x, z = batch()
a, b = exe.run(test_program, feed={'clean': x, 'noisy': z}, fetch_list=[made, loss])
print('test %.6f, error %.6f' % (float(b), np.abs(a - x).mean()))

"""Sub-pixel super resolution and a perceptual loss through a frozen network."""

import numpy
import paddle.fluid as fluid
from paddle.fluid.layers import conv2d, elementwise_add, pixel_shuffle

SCALE = 2


def msra(name, trainable=True, lr=1.0):
    return fluid.ParamAttr(
        name=name, initializer=fluid.initializer.MSRAInitializer(uniform=False),
        learning_rate=lr, trainable=trainable)


def frozen_features(x):
    """Gram matrices of two layers, as style transfer has them."""
    grams = []
    for i, ch in enumerate([4, 6]):
        x = conv2d(x, ch, 3, padding=1, act='relu', bias_attr=False,
                   param_attr=msra('vgg_%d' % i, trainable=False))
        n = x.shape[2] * x.shape[3]
        flat = fluid.layers.reshape(x, [-1, ch, n])
        grams.append(fluid.layers.matmul(flat, flat, transpose_y=True, alpha=1.0 / n))
        x = fluid.layers.pool2d(x, 2, 'avg', 2)
    return grams


def upscale(low):
    net = conv2d(low, 8, 5, padding=2, act='tanh', param_attr=msra('c1'))
    for i in range(2):
        res = conv2d(net, 8, 3, padding=1, act='relu', param_attr=msra('r%da' % i))
        res = conv2d(res, 8, 3, padding=1, param_attr=msra('r%db' % i, lr=0.5))
        net = elementwise_add(net, 0.1 * res)
    net = conv2d(net, 3 * SCALE**2, 3, padding=1, param_attr=msra('c2'))
    nearest = fluid.layers.resize_nearest(low, scale=SCALE, align_corners=False)
    return fluid.layers.clip(pixel_shuffle(net, SCALE) + nearest, -0.5, 1.5)


def psnr(a, b):
    return 10 * numpy.log10(1.0 / ((a - b)**2).mean())


low = fluid.layers.data('low', [3, 6, 6])
high = fluid.layers.data('high', [3, 12, 12])
made = upscale(low)
l1 = fluid.layers.reduce_mean(fluid.layers.smooth_l1(
    fluid.layers.flatten(made), fluid.layers.flatten(high), sigma=3.0))
style = fluid.layers.sums([
    fluid.layers.mse_loss(a, b)
    for a, b in zip(frozen_features(made), frozen_features(high))])
tv = fluid.layers.reduce_mean(fluid.layers.abs(made[:, :, 1:, :] - made[:, :, :-1, :]))
loss = l1 * 0.01 + style + 0.1 * tv
boundaries, rates = [3, 6], [1e-2, 5e-3, 1e-3]
lr = fluid.layers.linear_lr_warmup(
    fluid.layers.piecewise_decay(boundaries, rates), 2, 1e-3, 1e-2)
fluid.optimizer.AdamOptimizer(lr, regularization=fluid.regularizer.L2Decay(1e-4)) \
    .minimize(loss, no_grad_set={'vgg_0', 'vgg_1'})

exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
random = numpy.random.RandomState(17)
for p in fluid.default_main_program().global_block().all_parameters():
    if len(p.shape) == 4:
        fan = numpy.prod(p.shape[1:])
        w = random.normal(0, (1.0 / fan)**0.5, p.shape).astype('float32')
        fluid.global_scope().find_var(p.name).get_tensor().set(w, fluid.CPUPlace())
for step in range(9):
    coarse = random.rand(2, 3, 3, 3).repeat(4, 2).repeat(4, 3).astype('float32')
    small = coarse.reshape(2, 3, 6, 2, 6, 2).mean((3, 5))
    values = exe.run(feed={'low': small, 'high': coarse},
                     fetch_list=[loss, l1, style, tv, lr, made])
    print('step %d loss %.6f l1 %.5f style %.6f tv %.6f lr %.4f psnr %.3f' % tuple(
        [step] + [float(v) for v in values[:5]] + [psnr(values[5], coarse)]))

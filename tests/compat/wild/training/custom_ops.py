"""Layers of one's own: LayerHelper, py_func, Print, While, arrays."""
import contextlib
import os
import sys

import numpy as np
import paddle.fluid as fluid
from paddle.fluid.framework import Variable, default_main_program
from paddle.fluid.initializer import Constant
from paddle.fluid.layer_helper import LayerHelper


def scaled_mul(x, size, param_attr=None, bias_attr=None, act=None, name=None):
    """A linear layer out of append_op calls."""
    helper = LayerHelper('scaled_mul', **locals())
    dtype = helper.input_dtype('x')
    w = helper.create_parameter(
        attr=helper.param_attr, shape=[x.shape[-1], size], dtype=dtype, is_bias=False)
    tmp = helper.create_variable_for_type_inference(dtype)
    helper.append_op(
        type='mul', inputs={'X': x, 'Y': w}, outputs={'Out': tmp},
        attrs={'x_num_col_dims': 1, 'y_num_col_dims': 1})
    scaled = helper.create_variable_for_type_inference(dtype)
    helper.append_op(type='scale', inputs={'X': [tmp]}, outputs={'Out': [scaled]},
                     attrs={'scale': 0.5})
    pre_act = helper.append_bias_op(scaled, dim_start=1)
    return helper.append_activation(pre_act)


def relu_like(x):
    return np.where(x > 0, x, 0.1 * x)


def relu_like_grad(y, dy):
    return (np.array(dy) * np.where(np.array(y) > 0, 1, 0.1)).astype('float32')


def debug_shape(x):
    sys.stdout.write('py_func saw %s\n' % (np.array(x).shape, ))


def create_tmp_var(program, name, dtype, shape):
    return program.current_block().create_var(name=name, dtype=dtype, shape=shape)


def power_by_loop(x, n):
    """x ** n by a While, the way it was done before while_loop came."""
    i = fluid.layers.fill_constant(shape=[1], dtype='int64', value=0)
    limit = fluid.layers.fill_constant(shape=[1], dtype='int64', value=n)
    result = fluid.layers.fill_constant_batch_size_like(x, [-1, x.shape[1]], 'float32', 1.0)
    cond = fluid.layers.less_than(x=i, y=limit)
    loop = fluid.layers.While(cond=cond)
    with loop.block():
        fluid.layers.assign(fluid.layers.elementwise_mul(result, x), result)
        fluid.layers.increment(x=i, value=1, in_place=True)
        fluid.layers.less_than(x=i, y=limit, cond=cond)
    return result


@contextlib.contextmanager
def log_to(path):
    """What ops print goes to the process's standard output: keep it in a file."""
    sys.stdout.flush()
    kept, log = os.dup(1), os.open(path, os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
        os.close(log)


def main():
    place = fluid.CPUPlace()
    x = fluid.data(name='x', shape=[-1, 4], dtype='float32')
    y = fluid.data(name='y', shape=[-1, 1], dtype='float32')
    hidden = scaled_mul(x, 5, param_attr=fluid.ParamAttr(
        name='my_w', initializer=Constant(0.3)), act='tanh')
    out = create_tmp_var(default_main_program(), 'my_relu', hidden.dtype, hidden.shape)
    fluid.layers.py_func(
        func=lambda v: relu_like(np.array(v)).astype('float32'), x=hidden, out=out,
        backward_func=relu_like_grad, skip_vars_in_backward_input=hidden)
    fluid.layers.py_func(func=debug_shape, x=out, out=None)
    pred = fluid.layers.fc(out, 1, param_attr=fluid.ParamAttr(
        initializer=Constant(-0.2)))
    assert isinstance(pred, Variable)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(pred, y))
    powers = power_by_loop(x, 3)
    powers.stop_gradient = True
    array = fluid.layers.create_array('float32')
    index = fluid.layers.fill_constant(shape=[1], dtype='int64', value=0)
    fluid.layers.array_write(loss, index, array)
    fluid.layers.array_write(fluid.layers.mean(powers), fluid.layers.increment(
        fluid.layers.assign(index), 1), array)
    length = fluid.layers.array_length(array)
    again = fluid.layers.array_read(array, index)
    fluid.layers.Print(loss, first_n=1, message='the loss', summarize=2)
    clip = fluid.clip.GradientClipByNorm(clip_norm=0.5)
    fluid.optimizer.Adagrad(0.1, grad_clip=clip).minimize(loss)

    exe = fluid.Executor(place)
    exe.run(fluid.default_startup_program())
    random = np.random.RandomState(3)
    for step in range(4):
        feed = {'x': random.randn(6, 4).astype('float32'),
                'y': random.randn(6, 1).astype('float32')}
        with log_to('steps.log'):
            results = exe.run(
                feed=feed, fetch_list=[loss, again, powers, length, 'my_w@GRAD'],
                use_program_cache=True)
        print('step %d loss %.6f again %.6f powers %.5f count %d norm %.6f' % (
            step, results[0], results[1], np.abs(results[2]).mean(), results[3],
            np.sqrt((results[4]**2).sum())))
    with open('steps.log') as log:
        print('printed %d times' % log.read().count('the loss'))
    os.remove('steps.log')
    w = fluid.global_scope().find_var('my_w').get_tensor()
    print('weights %.6f %s' % (np.array(w).sum(), w.shape()))
    test = fluid.default_main_program().clone(for_test=True)._prune([pred])
    as_tensor = exe.run(test, feed=feed, fetch_list=[pred], return_numpy=False)[0]
    print('lod %s first %.6f' % (as_tensor.lod(), np.array(as_tensor)[0, 0]))
    block = fluid.default_main_program().global_block()
    print([op.type for op in block.ops][:8])
    print(sorted(p.name for p in block.all_parameters()))


if __name__ == '__main__':
    main()

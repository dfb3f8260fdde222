"""Helpers shared by the training and inference scripts."""


import distutils.util

import numpy as np
import paddle.fluid as fluid
import six


def print_arguments(args):
    print("-----------  Configuration Arguments -----------")
    for arg, value in sorted(six.iteritems(vars(args))):
        print("%s: %s" % (arg, value))
    print("------------------------------------------------")


def add_arguments(argname, type, default, help, argparser, **kwargs):
    type = distutils.util.strtobool if type == bool else type
    argparser.add_argument(
        "--" + argname,
        default=default,
        type=type,
        help=help + " Default: %(default)s.",
        **kwargs,
    )


def equal_start(program, place, seed=0, scale=None):
    """Give every parameter a value that depends on its name's place and a seed."""
    rng = np.random.RandomState(seed)
    scope = fluid.global_scope()
    for param in sorted(program.all_parameters(), key=lambda p: p.name):
        shape = param.shape
        if len(shape) == 1:
            value = 0.02 * rng.randn(*shape)
            if param.name.endswith(("scale", "variance", ".w_0", ".w_2")):
                value += 1.0
        else:
            fan = np.prod(shape[1:]) if len(shape) > 2 else shape[0]
            value = rng.randn(*shape) * (scale or np.sqrt(2.0 / fan))
        scope.find_var(param.name).get_tensor().set(value.astype("float32"), place)


def reader_creator(count, image_shape, class_dim, seed):
    """A paddle reader over pictures whose brightness tells their class."""

    def reader():
        rng = np.random.RandomState(seed)
        for _ in six.moves.range(count):
            label = rng.randint(class_dim)
            img = rng.rand(*image_shape) - 0.5 + 0.2 * label
            yield img.astype("float32").flatten(), int(label)

    return reader

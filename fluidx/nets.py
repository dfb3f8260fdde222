"""Compositions of layers that many networks use (``fluid.nets``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidx import layers
from fluidx.ir import Variable
from fluidx.layers.emit import check_dtype, check_variable

__all__ = [
    "glu",
    "img_conv_group",
    "scaled_dot_product_attention",
    "sequence_conv_pool",
    "simple_img_conv_pool",
]


def simple_img_conv_pool(
    input: Variable,
    num_filters: int,
    filter_size: Any,
    pool_size: Any,
    pool_stride: Any,
    pool_padding: Any = 0,
    pool_type: str = "max",
    global_pooling: bool = False,
    conv_stride: Any = 1,
    conv_padding: Any = 0,
    conv_dilation: Any = 1,
    conv_groups: int = 1,
    param_attr: Any = None,
    bias_attr: Any = None,
    act: str | None = None,
    use_cudnn: bool = True,
) -> Variable:
    """A convolution and a pooling of [N, C, H, W].

    Mirrors ``fluid.nets.simple_img_conv_pool``.

    >>> import fluidx as fluid
    >>> image = fluid.data("simple_in", [None, 1, 28, 28])
    >>> fluid.nets.simple_img_conv_pool(image, 20, 5, 2, 2, act="relu").shape
    (-1, 20, 12, 12)
    """
    conv = layers.conv2d(
        input,
        num_filters,
        filter_size,
        stride=conv_stride,
        padding=conv_padding,
        dilation=conv_dilation,
        groups=conv_groups,
        param_attr=param_attr,
        bias_attr=bias_attr,
        act=act,
        use_cudnn=use_cudnn,
    )
    return layers.pool2d(
        conv,
        pool_size,
        pool_type,
        pool_stride,
        pool_padding,
        global_pooling,
        use_cudnn,
    )


def _each(value: Any, count: int, arg: str) -> list[Any]:
    """One value per convolution."""
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise ValueError(
            f"img_conv_group: {count} convolutions, but {len(value)} values of {arg}"
        )
    return list(value)


def img_conv_group(
    input: Variable,
    conv_num_filter: Sequence[int],
    pool_size: Any,
    conv_padding: Any = 1,
    conv_filter_size: Any = 3,
    conv_act: str | None = None,
    param_attr: Any = None,
    conv_with_batchnorm: Any = False,
    conv_batchnorm_drop_rate: Any = 0.0,
    pool_stride: Any = 1,
    pool_type: str = "max",
    use_cudnn: bool = True,
) -> Variable:
    """Several convolutions, with batch_norm and dropout if asked for, and a pooling.

    Lists give a value for each convolution. Mirrors ``fluid.nets.img_conv_group``.

    >>> import fluidx as fluid
    >>> x = fluid.data("img_conv_group_x", [None, 3, 16, 16])
    >>> made = fluid.nets.img_conv_group(x, [4, 4], pool_size=2, pool_stride=2)
    >>> made.shape
    (-1, 4, 8, 8)
    """
    if not isinstance(conv_num_filter, (list, tuple)):
        raise TypeError(
            f"img_conv_group: conv_num_filter must be a list, got {conv_num_filter!r}"
        )
    count = len(conv_num_filter)
    made = input
    for filters, padding, size, attr, with_norm, drop in zip(
        conv_num_filter,
        _each(conv_padding, count, "conv_padding"),
        _each(conv_filter_size, count, "conv_filter_size"),
        _each(param_attr, count, "param_attr"),
        _each(conv_with_batchnorm, count, "conv_with_batchnorm"),
        _each(conv_batchnorm_drop_rate, count, "conv_batchnorm_drop_rate"),
    ):
        made = layers.conv2d(
            made,
            filters,
            size,
            padding=padding,
            param_attr=attr,
            act=None if with_norm else conv_act,
            use_cudnn=use_cudnn,
        )
        if with_norm:
            made = layers.batch_norm(made, act=conv_act)
            if abs(drop) > 1e-5:
                made = layers.dropout(made, dropout_prob=drop)
    return layers.pool2d(made, pool_size, pool_type, pool_stride, use_cudnn=use_cudnn)


def sequence_conv_pool(
    input: Variable,
    num_filters: int,
    filter_size: int,
    param_attr: Any = None,
    act: str | None = "sigmoid",
    pool_type: str = "max",
    bias_attr: Any = None,
) -> Variable:
    """A convolution along sequences and a pooling of each: [sequences, num_filters].

    Mirrors ``fluid.nets.sequence_conv_pool``.

    >>> import fluidx as fluid
    >>> x = fluid.data("sequence_conv_pool_x", [None, 8], lod_level=1)
    >>> fluid.nets.sequence_conv_pool(x, 16, 3).shape
    (-1, 16)
    """
    check_variable(input, "input", "sequence_conv_pool")
    conv = layers.sequence_conv(
        input,
        num_filters,
        filter_size,
        param_attr=param_attr,
        bias_attr=bias_attr,
        act=act,
    )
    return layers.sequence_pool(conv, pool_type)


def glu(input: Variable, dim: int = -1) -> Variable:
    """The first half along `dim` times the sigmoid of the second half.

    Dauphin et al. (2016). Mirrors ``fluid.nets.glu``.

    >>> import fluidx as fluid
    >>> x = fluid.data("glu_x", [None, 4])
    >>> fluid.nets.glu(x, dim=1).shape
    (-1, 2)
    """
    check_variable(input, "input", "glu")
    value, gate = layers.split(input, num_or_sections=2, dim=dim)
    return layers.elementwise_mul(value, layers.sigmoid(gate))


def scaled_dot_product_attention(
    queries: Variable,
    keys: Variable,
    values: Variable,
    num_heads: int = 1,
    dropout_rate: float = 0.0,
) -> Variable:
    """softmax(q k^T / sqrt(width)) v, in `num_heads` parts: [N, queries, width].

    queries, keys, values: [N, length, width], keys and values of one length. With
    several heads each is first projected by a fully connected layer. Vaswani et al.
    (2017). Mirrors ``fluid.nets.scaled_dot_product_attention``.

    >>> import fluidx as fluid
    >>> x = fluid.data("scaled_dot_product_attention_x", [2, 5, 8])
    >>> fluid.nets.scaled_dot_product_attention(x, x, x, num_heads=2).shape
    (2, 5, 8)
    """
    layer = "scaled_dot_product_attention"
    given = {"queries": queries, "keys": keys, "values": values}
    for arg, var in given.items():
        check_dtype(var, arg, layer, (queries.dtype,))
        if len(var.shape) != 3:
            raise ValueError(
                f"{layer}: {arg} must have 3 dimensions, got {list(var.shape)}"
            )
    if queries.shape[-1] != keys.shape[-1]:
        raise ValueError(
            f"{layer}: queries and keys differ in width: {list(queries.shape)} and "
            f"{list(keys.shape)}"
        )
    if keys.shape[-2] != values.shape[-2]:
        raise ValueError(
            f"{layer}: keys and values differ in length: {list(keys.shape)} and "
            f"{list(values.shape)}"
        )
    for arg, var in (("keys", keys), ("values", values)):
        if num_heads < 1 or var.shape[-1] % num_heads:
            raise ValueError(
                f"{layer}: num_heads {num_heads} does not divide the width of {arg}, "
                f"{var.shape[-1]}"
            )
    q, k, v = queries, keys, values
    if num_heads > 1:
        q, k, v = (layers.fc(x, x.shape[-1], 2) for x in (queries, keys, values))
        q, k, v = (_split_heads(x, num_heads) for x in (q, k, v))
    scaled = layers.scale(q, (keys.shape[-1] // num_heads) ** -0.5)
    product = layers.matmul(scaled, k, transpose_y=True)
    flat = layers.reshape(product, [-1, product.shape[-1]], act="softmax")
    weights = layers.reshape(flat, list(product.shape))
    if dropout_rate:
        weights = layers.dropout(weights, dropout_prob=dropout_rate, is_test=False)
    context = layers.matmul(weights, v)
    return _join_heads(context) if num_heads > 1 else context


def _split_heads(x: Variable, num_heads: int) -> Variable:
    parts = [*x.shape[:-1], num_heads, x.shape[-1] // num_heads]
    return layers.transpose(layers.reshape(x, parts), [0, 2, 1, 3])


def _join_heads(x: Variable) -> Variable:
    turned = layers.transpose(x, [0, 2, 1, 3])
    return layers.reshape(
        turned, [*turned.shape[:2], turned.shape[2] * turned.shape[3]]
    )

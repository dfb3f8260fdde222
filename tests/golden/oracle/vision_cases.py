"""Networks of vision, ranking and similarity layers, for both systems.

Every function takes the `fluid` module and builds into the default programs, as in
layer_cases.py.
"""


def _x(fluid, shape, dtype="float32", name="x", lod=0):
    return fluid.data(name, list(shape), dtype, lod)


def conv3d(fluid):
    x = _x(fluid, (None, 4, 6, 10, 10))
    last = _x(fluid, (None, 6, 10, 10, 4), name="last")
    conv = fluid.layers.conv3d
    conv(x, 6, 3)
    conv(x, 6, [1, 3, 5], stride=2, padding=[1, 2, 0], act="relu")
    conv(x, 6, 3, padding="SAME", bias_attr=False, dilation=[1, 2, 1])
    conv(x, 6, 3, padding="VALID", stride=[2, 1, 1])
    conv(x, 6, 3, padding=[1, 2, 3, 4, 0, 1], groups=2, param_attr="w")
    conv(x, 6, 3, padding=[[0, 0], [0, 0], [1, 2], [3, 4], [0, 0]], bias_attr="b")
    conv(x, 6, 3, padding=[[0, 0], [0, 0], [1, 1], [3, 3], [0, 0]], name="c")
    conv(last, 6, 3, data_format="NDHWC", act="relu")


def conv3d_transpose(fluid):
    x = _x(fluid, (None, 4, 5, 5, 5))
    last = _x(fluid, (None, 5, 5, 5, 4), name="last")
    transposed = fluid.layers.conv3d_transpose
    transposed(x, 6, filter_size=3)
    transposed(x, 6, output_size=[11, 11, 11], stride=2, act="relu")
    transposed(x, 6, output_size=12, stride=2, dilation=2, padding=1, bias_attr=False)
    transposed(x, 6, filter_size=3, groups=2, padding=[1, 1, 0, 0, 0, 1])
    transposed(x, 6, filter_size=3, padding="SAME", param_attr="w", bias_attr="b")
    transposed(x, 6, filter_size=[1, 2, 3], stride=[1, 2, 2], padding="VALID", name="t")
    transposed(last, 6, filter_size=3, data_format="NDHWC")


def depthwise_transpose(fluid):
    x = _x(fluid, (None, 4, 5, 5))
    fluid.layers.conv2d_transpose(x, 4, filter_size=3, groups=4, use_cudnn=False)


def pools(fluid):
    x = _x(fluid, (None, 4, 6, 10, 10))
    last = _x(fluid, (None, 6, 10, 10, 4), name="last")
    image = _x(fluid, (None, 4, 10, 10), name="image")
    layers = fluid.layers
    layers.pool3d(x, 2)
    layers.pool3d(x, [2, 3, 1], "avg", [2, 1, 1], [0, 1, 0], exclusive=False)
    layers.pool3d(x, 2, "max", 2, ceil_mode=True, use_cudnn=False)
    layers.pool3d(x, global_pooling=True, pool_type="avg")
    layers.pool3d(x, 3, pool_padding="SAME", pool_stride=2)
    layers.pool3d(x, 3, pool_padding="VALID", name="v")
    layers.pool3d(x, 3, pool_padding=[1, 0, 1, 1, 0, 0])
    layers.pool3d(x, 3, pool_padding=[[0, 0], [0, 0], [1, 0], [1, 1], [0, 0]])
    layers.pool3d(last, 2, data_format="NDHWC", name="p")
    layers.adaptive_pool3d(x, 3, "avg")
    layers.adaptive_pool3d(x, [2, 3, 1], "max")
    layers.adaptive_pool3d(x, 2, "max", require_index=True, name="a")
    layers.adaptive_pool2d(image, [2, 3], "max")
    layers.adaptive_pool2d(image, 2, "max", require_index=True)


def resizes(fluid):
    x = _x(fluid, (None, 4, 6, 10))
    last = _x(fluid, (None, 6, 10, 4), name="last")
    layers = fluid.layers
    four = layers.fill_constant([1], "int32", 4)
    size = layers.fill_constant([2], "int32", 4)
    layers.resize_bilinear(x, [12, 12])
    layers.resize_bilinear(x, scale=2.0, align_corners=False, align_mode=0)
    layers.resize_bilinear(x, [four, 12], name="r")
    layers.resize_bilinear(x, size)
    layers.resize_bilinear(x, scale=layers.fill_constant([1], "float32", 1.5))
    layers.resize_bilinear(x, [12, 12], actual_shape=size)
    layers.resize_bilinear(last, [12, 12], data_format="NHWC")
    layers.resize_nearest(x, [12, 12])
    layers.resize_nearest(x, scale=0.5, align_corners=False, name="n")
    layers.image_resize(x, [12, 12])
    layers.image_resize(x, [12, 12], resample="NEAREST", align_corners=False)
    layers.interpolate(x, scale=3, resample="BILINEAR", align_mode=0)
    layers.interpolate(x, (3, 5), resample="NEAREST")


def resize_short(fluid):
    x = _x(fluid, (2, 4, 6, 10))
    fluid.layers.image_resize_short(x, 3)
    fluid.layers.image_resize_short(x, 12, "NEAREST")


def resize_volume(fluid):
    x = _x(fluid, (None, 4, 3, 6, 10))
    last = _x(fluid, (None, 3, 6, 10, 4), name="last")
    layers = fluid.layers
    layers.resize_trilinear(x, [6, 12, 12])
    layers.resize_trilinear(x, scale=2, align_corners=False, align_mode=0, name="t")
    layers.resize_trilinear(last, [6, 12, 12], data_format="NDHWC")
    three = layers.fill_constant([3], "int32", 4)
    layers.resize_trilinear(x, three)
    layers.resize_trilinear(x, [6, 12, 12], actual_shape=three)
    layers.image_resize(x, [6, 12, 12], resample="TRILINEAR", data_format="NCDHW")


def grids(fluid):
    theta = _x(fluid, (None, 2, 3), name="theta")
    x = _x(fluid, (None, 3, 6, 10))
    layers = fluid.layers
    grid = layers.affine_grid(theta, [2, 3, 6, 10])
    layers.affine_grid(theta, layers.fill_constant([4], "int32", 4), name="g")
    layers.grid_sampler(x, _x(fluid, (None, 6, 10, 2), name="points"))
    layers.grid_sampler(_x(fluid, (2, 3, 6, 10), name="y"), grid, name="s")
    scale = layers.create_parameter([3], "float32", "scale")
    bias = layers.create_parameter([3], "float32", "bias")
    layers.affine_channel(x, scale, bias)
    last = _x(fluid, (None, 6, 10, 3), name="last")
    layers.affine_channel(last, scale, bias, "NHWC", act="relu", name="a")


def norms(fluid):
    x = _x(fluid, (None, 6))
    layers = fluid.layers
    layers.data_norm(x)
    layers.data_norm(x, act="relu", epsilon=1e-4, name="d", slot_dim=3)
    some = {"batch_size": 1e3, "batch_sum": 1.0, "batch_square": 1e2}
    layers.data_norm(x, param_attr=some, name="e", summary_decay_rate=0.9)
    some.update(scale_w=2.0, bias=0.5)
    layers.data_norm(x, param_attr=some, name="f", enable_scale_and_shift=True)
    layers.data_norm(layers.relu(x), in_place=True, name="g")
    weight = layers.create_parameter([4, 3, 2], "float32", "weight")
    layers.spectral_norm(weight)
    layers.spectral_norm(weight, dim=1, power_iters=2, eps=1e-6, name="s")


def ranks(fluid):
    layers = fluid.layers
    x = _x(fluid, (None, 5))
    label = _x(fluid, (None, 1), "int64", "label")
    one, two, three = (_x(fluid, (None, 1), name=n) for n in ("one", "two", "three"))
    layers.bpr_loss(x, label)
    layers.bpr_loss(x, label, "b")
    layers.margin_rank_loss(one, two, three)
    layers.margin_rank_loss(one, two, three, 0.5, "m")
    layers.rank_loss(one, two, three)
    layers.rank_loss(one, two, three, "r")
    layers.kldiv_loss(x, _x(fluid, (None, 5), name="y"))
    layers.kldiv_loss(x, _x(fluid, (None, 5), name="z"), "none", "k")
    layers.teacher_student_sigmoid_loss(one, two)
    layers.teacher_student_sigmoid_loss(one, two, 10.0, -10.0)
    count = _x(fluid, (1,), "int32", "count")
    kind = _x(fluid, (None, 1), "int32", "kind")
    layers.sigmoid_focal_loss(x, kind, count)
    layers.sigmoid_focal_loss(x, kind, count, 1.5, 0.5)


def centers(fluid):
    layers = fluid.layers
    x = _x(fluid, (None, 5))
    label = _x(fluid, (None, 1), "int64", "label")
    constant = fluid.initializer.Constant(0.0)
    attr = fluid.ParamAttr(initializer=constant)
    layers.center_loss(x, label, 10, 0.2, attr)
    layers.center_loss(x, label, 10, 0.2, fluid.ParamAttr("c"), update_center=False)
    rate = layers.fill_constant([1], "float32", 0.1)
    layers.center_loss(x, label, 4, rate, attr)


def pairs(fluid):
    layers = fluid.layers
    x, y = _x(fluid, (None, 5)), _x(fluid, (None, 4), name="y")
    layers.bilinear_tensor_product(x, y, 7)
    layers.bilinear_tensor_product(
        x, y, 7, "relu", "b", fluid.ParamAttr("w"), fluid.ParamAttr("c")
    )
    layers.bilinear_tensor_product(x, y, 7, bias_attr=False)
    layers.add_position_encoding(_x(fluid, (None, 6, 8), name="long"), 0.5, 2.0)
    layers.add_position_encoding(_x(fluid, (None, 8), lod=1, name="seq"), 1.0, 1.0, "a")
    image = _x(fluid, (None, 3, 4, 4), name="image")
    layers.fsp_matrix(image, _x(fluid, (None, 5, 4, 4), name="other"))
    layers.similarity_focus(image, 1, [0])
    layers.similarity_focus(image, 2, [0, 1], "s")
    seen = _x(fluid, (None, 2), name="seen")
    layers.continuous_value_model(x, seen)
    layers.continuous_value_model(x, seen, False)
    guess = _x(fluid, (None, 4, 4), "int32", "guess")
    layers.mean_iou(guess, _x(fluid, (None, 4, 4), "int32", "truth"), 5)


def prelus(fluid):
    x = _x(fluid, (None, 4, 6, 6))
    layers = fluid.layers
    layers.prelu(x, "all")
    layers.prelu(x, "channel", "p")
    layers.prelu(x, "element", fluid.ParamAttr("q"), "n")


def cases():
    """Every network of this file by name, in order."""
    found = {
        n: f
        for n, f in globals().items()
        if callable(f) and not n.startswith("_") and n != "cases"
    }
    return found

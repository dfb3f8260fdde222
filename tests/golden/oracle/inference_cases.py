"""The inference API of ``fluid.core``, used in the same way under both systems."""

import os

import numpy as np

ARRAYS = {
    "int32": np.arange(6).reshape(2, 3).astype("int32"),
    "int64": np.arange(6).reshape(2, 3).astype("int64"),
    "float32": np.arange(6).reshape(2, 3).astype("float32") / 4,
    "uint8": np.arange(6).reshape(2, 3).astype("uint8"),
    "bool": np.arange(6).reshape(2, 3) > 2,
    "int8": np.arange(6).astype("int8") - 3,
    "scalar": np.array(2, "float32"),
    "list": [1, 2, 3],
}
GETTERS = (
    "cpu_math_library_num_threads", "fraction_of_gpu_memory_for_pool",
    "glog_info_disabled", "gpu_device_id", "ir_optim", "lite_engine_enabled",
    "memory_pool_init_size_mb", "mkldnn_enabled", "model_dir", "model_from_memory",
    "params_file", "prog_file", "specify_input_name", "tensorrt_engine_enabled",
    "use_feed_fetch_ops_enabled", "use_gpu",
)  # fmt: skip
NATIVE = (
    "device", "fraction_of_gpu_memory", "model_dir", "param_file", "prog_file",
    "specify_input_name", "use_gpu",
)  # fmt: skip


def shown(tensor):
    array = tensor.as_ndarray()
    return {
        "name": tensor.name,
        "shape": list(tensor.shape),
        "kind": str(tensor.dtype),
        "lod": [list(level) for level in tensor.lod],
        "bytes": tensor.data.length(),
        "dtype": str(array.dtype),
        "value": array.tolist(),
    }


def settings(config):
    return {name: getattr(config, name)() for name in GETTERS}


def config_cases(core):
    made = core.AnalysisConfig()
    yield "default", settings(made)
    made.set_model("/x")
    yield "folder", settings(made)
    made.set_model("/m", "/p")
    yield "files after a folder", settings(made)
    made.set_model("/y")
    yield "a folder again", settings(made)
    yield "two files", settings(core.AnalysisConfig("/m", "/p"))
    made.set_prog_file("P")
    made.set_params_file("Q")
    made.switch_ir_optim(0)
    made.switch_use_feed_fetch_ops(False)
    made.switch_specify_input_names()
    made.switch_ir_debug()
    made.enable_memory_optim()
    made.set_cpu_math_library_num_threads(4)
    made.disable_glog_info()
    made.enable_mkldnn()
    made.set_mkldnn_cache_capacity(10)
    made.set_mkldnn_op({"conv2d"})
    made.enable_quantizer()
    made.quantizer_config().set_quant_batch_size(3)
    made.set_optim_cache_dir("/c")
    made.delete_pass("fc_fuse_pass")
    made.set_trt_dynamic_shape_info()
    made.enable_profile()
    yield "all switches", settings(made)
    yield "a copy", settings(core.AnalysisConfig(made))
    made.disable_gpu()
    native = made.to_native_config()
    yield "native", {name: getattr(native, name) for name in NATIVE}
    native = core.NativeConfig()
    yield "native default", {name: getattr(native, name) for name in NATIVE}
    yield (
        "precisions",
        [
            [str(p), int(p)]
            for p in (core.AnalysisConfig.Float32, core.AnalysisConfig.Precision.Half)
        ],
    )


def tensor_cases(core):
    empty = core.PaddleTensor()
    yield (
        "empty",
        [empty.name, list(empty.shape), str(empty.dtype), empty.data.length()],
    )
    for name, array in sorted(ARRAYS.items()):
        yield name, shown(core.PaddleTensor(array))
    full = core.PaddleTensor(ARRAYS["int32"], name="ab", lod=[[0, 1, 2]], copy=True)
    yield "full", shown(full)
    array = np.arange(4, dtype="float32")
    shared, own = core.PaddleTensor(array, copy=False), core.PaddleTensor(array)
    array[0] = 9
    yield "shared", [shown(shared), shown(own)]
    full.shape = [3, 2]
    full.name = b"renamed"
    full.lod = [[0, 3]]
    yield "changed", shown(full)
    by_hand = core.PaddleTensor()
    by_hand.shape = [2, 2]
    by_hand.data = core.PaddleBuf(np.arange(4, dtype="float32"))
    yield "by hand", shown(by_hand)
    by_hand.dtype = core.PaddleDType.INT32
    yield "as int32", shown(by_hand)
    by_hand.data.reset(np.arange(4, 10, dtype="int64"))
    yield "reset", [by_hand.data.length(), by_hand.data.tolist("int64")]
    for name in ("float32", "int32", "int64", "list"):
        yield (
            "bytes " + name,
            core.paddle_tensor_to_bytes(
                core.PaddleTensor(ARRAYS[name], name="x" + name, lod=[[0, 1], [0, 2]])
            ).decode("latin-1"),
        )
    yield "bytes empty", core.paddle_tensor_to_bytes(empty).decode("latin-1")


def buffer_cases(core):
    yield "floats", core.PaddleBuf([1.0, 2.5]).float_data()
    yield "as int32", core.PaddleBuf([1.0, 2.5]).int32_data()
    buf = core.PaddleBuf(np.arange(3, dtype="int64"))
    yield "int64", [buf.length(), buf.int64_data(), buf.int32_data(), buf.float_data()]
    buf.resize(4)
    yield "shorter", buf.length()
    buf.reset([3.0])
    yield "rewritten", [buf.length(), buf.float_data()[0]]
    buf.resize(400)
    yield "longer", buf.length()
    yield "size", [core.PaddleBuf(8).length(), core.PaddleBuf(8).empty()]
    kinds = (core.PaddleDType.FLOAT32, core.PaddleDType.INT32, core.PaddleDType.INT64)
    yield "kinds", [[str(k), int(k), core.paddle_dtype_size(k)] for k in kinds]
    places = (core.PaddlePlace.UNK, core.PaddlePlace.CPU, core.PaddlePlace.GPU)
    yield "places", [[str(p), int(p)] for p in places]


# ---------------------------------------------------------------- predictors


def save(fluid, folder):
    """A model with three inputs, one of sequences, and outputs of each dtype."""
    layers = fluid.layers
    main, startup = fluid.Program(), fluid.Program()
    executor = fluid.Executor(fluid.CPUPlace())
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        with fluid.scope_guard(fluid.Scope()):
            x = fluid.data("x", [2, 3])
            n = fluid.data("n", [None, 1], "int64")
            s = fluid.data("s", [None, 3], lod_level=1)
            weight = fluid.ParamAttr(
                initializer=fluid.initializer.NumpyArrayInitializer(
                    np.arange(6, dtype="float32").reshape(3, 2) / 8
                )
            )
            hidden = layers.fc(x, 2, act="tanh", param_attr=weight)
            outs = [
                layers.dropout(hidden, 0.5),
                layers.cast(x, "int64"),
                layers.cast(n, "int32"),
                layers.sequence_pool(s, "sum"),
                layers.scale(s, 2.0),
            ]
            executor.run(startup)
            with_names = ["x", "n", "s"]
            fluid.io.save_inference_model(folder, with_names, outs, executor, main)
            files = os.path.join(folder, "files")
            fluid.io.save_inference_model(
                files, with_names, outs, executor, main, "m", "p"
            )


def inputs(core, rows=2):
    return [
        core.PaddleTensor(
            np.arange(3 * rows, dtype="float32").reshape(rows, 3) / 4, "x"
        ),
        core.PaddleTensor(np.arange(3).reshape(3, 1), "n"),
        core.PaddleTensor(
            np.arange(12).reshape(4, 3).astype("float32"), "s", [[0, 1, 4]]
        ),
    ]


def config_of(core, folder, feed_fetch=True, names=False):
    made = core.AnalysisConfig(folder)
    made.disable_gpu()
    made.disable_glog_info()
    made.switch_use_feed_fetch_ops(feed_fetch)
    made.switch_specify_input_names(names)
    return made


def predictor_cases(core, folder):
    predictor = core.create_paddle_predictor(config_of(core, folder))
    yield "names", [predictor.get_input_names(), predictor.get_output_names()]
    yield "shapes", predictor.get_input_tensor_shape()
    yield "run", [shown(t) for t in predictor.run(inputs(core))]
    yield "other size", [shown(t) for t in predictor.run(inputs(core, 5))]
    yield "clone", [shown(t) for t in predictor.clone().run(inputs(core))]
    named = core.create_paddle_predictor(config_of(core, folder, names=True))
    a, b, c = inputs(core)
    yield "by name", [shown(t) for t in named.run([c, a, b])]
    files = os.path.join(folder, "files")
    paths = [os.path.join(files, "m"), os.path.join(files, "p")]
    config = core.AnalysisConfig(*paths)
    config.disable_glog_info()
    predictor = core.create_paddle_predictor(config)
    yield "two files", [shown(t) for t in predictor.run(inputs(core))]
    config, data = core.AnalysisConfig(), []
    config.disable_glog_info()
    for path in paths:
        with open(path, "rb") as file:
            data.append(file.read())
    config.set_model_buffer(data[0], len(data[0]), data[1], len(data[1]))
    predictor = core.create_paddle_predictor(config)
    yield "from memory", [shown(t) for t in predictor.run(inputs(core))]
    native = core.NativeConfig()
    native.model_dir = folder
    predictor = core.create_paddle_predictor(native)
    yield "native", [shown(t) for t in predictor.run(inputs(core))]
    yield "native clone", [shown(t) for t in predictor.clone().run(inputs(core))]
    yield (
        "native has no",
        [
            predictor.get_input_names(),
            predictor.get_output_names(),
            predictor.get_input_tensor("x"),
            predictor.zero_copy_run(),
        ],
    )


def handles(predictor):
    found = [predictor.get_output_tensor(n) for n in predictor.get_output_names()]
    return [
        [t.shape(), str(t.type()), [list(v) for v in t.lod()], t.copy_to_cpu().tolist()]
        for t in found
    ]


def zero_copy_cases(core, folder):
    predictor = core.create_paddle_predictor(config_of(core, folder, False))
    given = inputs(core)
    for tensor in given:
        handle = predictor.get_input_tensor(tensor.name)
        yield "before " + tensor.name, [handle.shape(), list(handle.lod())]
        handle.reshape(tensor.shape)
        yield "reshaped " + tensor.name, handle.shape()
        handle.copy_from_cpu(tensor.as_ndarray())
        handle.set_lod(tensor.lod)
        yield "set " + tensor.name, [handle.shape(), str(handle.type()), handle.lod()]
    yield "ran", predictor.zero_copy_run()
    yield "results", handles(predictor)
    array = np.zeros((3, 3), "float32")
    handle = predictor.get_input_tensor("x")
    handle.copy_from_cpu(array)  # another shape, and no reshape before
    array[:] = 7
    out = predictor.get_output_tensor(predictor.get_output_names()[1])
    before = out.copy_to_cpu()
    yield "again", predictor.zero_copy_run()
    yield "results again", handles(predictor)
    yield "kept", before.tolist()
    handle.reshape([1, 3])
    predictor.zero_copy_run()
    yield "first row", out.copy_to_cpu().tolist()
    clone = predictor.clone()
    yield "of a clone", [clone.get_input_tensor("x").shape(), handle.shape()]


def all_cases(fluid, core, folder):
    save(fluid, folder)
    parts = {
        "config": config_cases(core),
        "tensor": tensor_cases(core),
        "buffer": buffer_cases(core),
        "predictor": predictor_cases(core, folder),
        "zero copy": zero_copy_cases(core, folder),
    }
    return {name: dict(cases) for name, cases in parts.items()}

"""ParallelExecutor, CompiledProgram, strategies, the profiler."""

import os

os.environ["CPU_NUM"] = str(1)
import contextlib
import sys
import time
import numpy as np
import paddle.fluid as fluid
import paddle.fluid.profiler as profiler
from paddle.fluid import core
from paddle.fluid import compiler


def net():
    img = fluid.layers.data(name="image", shape=[784 // 49], dtype="float32")
    label = fluid.layers.data(name="label", shape=[1], dtype="int64")
    h = fluid.layers.fc(
        img,
        10,
        act="relu",
        param_attr=fluid.ParamAttr(name="w0"),
        bias_attr=fluid.ParamAttr(name="b0"),
    )
    p = fluid.layers.fc(
        h,
        4,
        act="softmax",
        param_attr=fluid.ParamAttr(name="w1"),
        bias_attr=fluid.ParamAttr(name="b1"),
    )
    loss = fluid.layers.mean(fluid.layers.cross_entropy(p, label))
    acc1 = fluid.layers.accuracy(p, label, k=1)
    acc2 = fluid.layers.accuracy(p, label, k=2)
    return loss, acc1, acc2


def fill():
    rng = np.random.RandomState(0)
    for n, s in (("w0", (16, 10)), ("w1", (10, 4))):
        fluid.global_scope().find_var(n).get_tensor().set(
            (rng.randn(*s) * 0.3).astype("float32"), fluid.CPUPlace()
        )


def batches(n):
    rng = np.random.RandomState(1)
    for _ in range(n):
        x = rng.rand(8, 16).astype("float32")
        yield x, x[:, :4].argmax(1).reshape(-1, 1).astype("int64")


def parallel_executor(use_cuda=False):
    train, startup, test = fluid.Program(), fluid.Program(), fluid.Program()
    with fluid.program_guard(train, startup):
        with fluid.unique_name.guard():
            loss, a1, a2 = net()
            fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    with fluid.program_guard(test, startup):
        with fluid.unique_name.guard():
            tl, t1, t2 = net()
    test = test.clone(for_test=True)
    exe = fluid.Executor(fluid.CUDAPlace(0) if use_cuda else fluid.CPUPlace())
    exe.run(startup)
    fill()
    es = fluid.ExecutionStrategy()
    es.num_threads = 2
    es.num_iteration_per_drop_scope = 10
    bs = fluid.BuildStrategy()
    bs.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.AllReduce
    bs.gradient_scale_strategy = (
        fluid.BuildStrategy.GradientScaleStrategy.CoeffNumDevice
    )
    bs.fuse_elewise_add_act_ops = True
    bs.memory_optimize = False
    bs.enable_sequential_execution = True
    bs.fuse_all_optimizer_ops = True
    print(bs.num_trainers, bs.trainer_id, es.num_threads)
    pe = fluid.ParallelExecutor(
        use_cuda=use_cuda,
        loss_name=loss.name,
        main_program=train,
        exec_strategy=es,
        build_strategy=bs,
    )
    tpe = fluid.ParallelExecutor(
        use_cuda=use_cuda, main_program=test, share_vars_from=pe
    )
    print("devices", pe.device_count)
    for i, (x, y) in enumerate(batches(4)):
        if i % 2:
            out = pe.run(
                fetch_list=[loss.name, a1.name, a2.name], feed={"image": x, "label": y}
            )
        else:
            out = pe.run([loss.name, a1.name, a2.name], feed=[{"image": x, "label": y}])
        print(
            "pe %d loss %.5f acc %.4f %.4f"
            % ((i,) + tuple(np.mean(np.array(o)) for o in out))
        )
        out = tpe.run(
            fetch_list=[tl.name, t2.name],
            feed={"image": x, "label": y},
            return_numpy=True,
        )
        print("   test %.5f %.4f" % tuple(np.mean(o) for o in out))
    pe.drop_local_exe_scopes()


def compiled():
    train, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(train, startup), fluid.unique_name.guard():
        loss, a1, a2 = net()
        infer = train.clone(for_test=True)
        fluid.optimizer.Adam(0.05).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    fill()
    bs = compiler.BuildStrategy()
    bs.sync_batch_norm = False
    bs.enable_inplace = True
    cp = compiler.CompiledProgram(train).with_data_parallel(
        loss_name=loss.name,
        build_strategy=bs,
        exec_strategy=compiler.ExecutionStrategy(),
        places=fluid.cpu_places(1),
    )
    tp = fluid.CompiledProgram(infer).with_data_parallel(share_vars_from=cp)
    plain = fluid.CompiledProgram(infer)
    for i, (x, y) in enumerate(batches(4)):
        feeder = fluid.DataFeeder(
            feed_list=[train.global_block().var("image"), "label"],
            place=fluid.CPUPlace(),
            program=train,
        )
        feed = (
            feeder.feed([(a, b) for a, b in zip(x, y)])
            if i % 2
            else list(
                feeder.feed_parallel([[(a, b) for a, b in zip(x, y)]], num_places=1)
            )
        )
        l, a = exe.run(cp, feed=feed, fetch_list=[loss.name, a1])
        print("cp %d %s %s %.5f" % (i, l.shape, a.shape, l))
        (l,) = exe.run(tp, feed={"image": x, "label": y}, fetch_list=[loss])
        (p,) = exe.run(plain, feed={"image": x, "label": y}, fetch_list=[loss])
        print("   %.5f %.5f" % (l.mean(), p))
    l = exe.run(
        cp, feed={"image": x, "label": y}, fetch_list=[loss], return_merged=False
    )
    print(type(l).__name__, np.array(l).shape)


def profiled():
    train, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(train, startup), fluid.unique_name.guard():
        loss, a1, a2 = net()
        fluid.optimizer.SGD(0.05).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    fill()
    stdout = os.dup(1)
    with open("prof.txt", "w") as f:
        os.dup2(f.fileno(), 1)
        try:
            with profiler.profiler("CPU", "total", "./profile") as prof:
                for x, y in batches(2):
                    exe.run(train, feed={"image": x, "label": y}, fetch_list=[loss])
            profiler.start_profiler("All")
            exe.run(train, feed={"image": x, "label": y}, fetch_list=[loss])
            profiler.reset_profiler()
            profiler.stop_profiler("calls", "./profile2")
        finally:
            sys.stdout.flush()
            os.dup2(stdout, 1)
    print(
        "profile written", os.path.exists("./profile"), "mul" in open("prof.txt").read()
    )
    print(
        "still trains %.5f"
        % exe.run(train, feed={"image": x, "label": y}, fetch_list=[loss])[0]
    )
    print(
        core.is_compiled_with_cuda(),
        core.get_cuda_device_count() if core.is_compiled_with_cuda() else 0,
        fluid.is_compiled_with_cuda(),
    )
    fluid.memory_optimize(train)
    fluid.release_memory(train)
    exe.close()


if __name__ == "__main__":
    for f in (parallel_executor, compiled, profiled):
        with fluid.scope_guard(fluid.Scope()):
            f()

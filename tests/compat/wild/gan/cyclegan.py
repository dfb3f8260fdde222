"""CycleGAN with the trainer classes of the image generation models."""


import numpy as np
import paddle.fluid as fluid

SHAPE = [-1, 3, 8, 8]
lambda_A, lambda_B, lambda_identity = 10.0, 10.0, 0.5


def norm(x, name):
    scale = fluid.ParamAttr(
        name=name + "_scale", initializer=fluid.initializer.Constant(1.0)
    )
    return fluid.layers.instance_norm(
        x, param_attr=scale, bias_attr=fluid.ParamAttr(name=name + "_offset")
    )


def conv2d(
    x,
    filters,
    size,
    stride=1,
    padding=0,
    name=None,
    norm_it=True,
    act=None,
    relu_factor=0.0,
):
    x = fluid.layers.conv2d(
        x,
        filters,
        size,
        stride=stride,
        padding=padding,
        name=name,
        param_attr=fluid.ParamAttr(
            name=name + "_w",
            initializer=fluid.initializer.NormalInitializer(scale=0.02),
        ),
        bias_attr=fluid.ParamAttr(name=name + "_b"),
    )
    if norm_it:
        x = norm(x, name + "_norm")
    if act == "leaky_relu":
        return fluid.layers.leaky_relu(x, alpha=relu_factor)
    return getattr(fluid.layers, act)(x) if act else x


def generator(x, name):
    pad = fluid.layers.pad2d(x, [3, 3, 3, 3], mode="reflect")
    y = conv2d(pad, 4, 7, name=name + "_c1", act="relu")
    y = conv2d(y, 8, 3, 2, 1, name=name + "_c2", act="relu")
    res = fluid.layers.pad2d(y, [1, 1, 1, 1], mode="reflect")
    y = y + conv2d(res, 8, 3, name=name + "_r1")
    y = fluid.layers.conv2d_transpose(
        y,
        4,
        filter_size=3,
        stride=2,
        padding=1,
        param_attr=fluid.ParamAttr(name=name + "_dc1_w"),
        bias_attr=fluid.ParamAttr(name=name + "_dc1_b"),
    )
    y = fluid.layers.pad2d(y, [0, 1, 0, 1], mode="constant", pad_value=0.0)
    y = fluid.layers.relu(norm(y, name + "_dc1_norm"))
    y = fluid.layers.pad2d(y, [3, 3, 3, 3], mode="reflect")
    return conv2d(y, 3, 7, name=name + "_c3", norm_it=False, act="tanh")


def discriminator(x, name):
    y = conv2d(
        x,
        4,
        4,
        2,
        1,
        name=name + "_c1",
        norm_it=False,
        act="leaky_relu",
        relu_factor=0.2,
    )
    y = conv2d(y, 8, 4, 2, 1, name=name + "_c2", act="leaky_relu", relu_factor=0.2)
    return conv2d(y, 1, 4, 1, 2, name=name + "_c3", norm_it=False)


def make_optimizer(loss, prefixes, program, lr=2e-3):
    params = [
        p.name
        for p in program.global_block().all_parameters()
        if p.name.startswith(prefixes)
    ]
    rate = fluid.layers.piecewise_decay(boundaries=[2, 4], values=[lr, lr / 2, lr / 4])
    opt = fluid.optimizer.Adam(
        learning_rate=rate, beta1=0.5, beta2=0.999, name="net_" + prefixes[0]
    )
    opt.minimize(loss, parameter_list=params)


class GTrainer:
    def __init__(self, a, b):
        self.program = fluid.default_main_program().clone()
        with fluid.program_guard(self.program):
            self.fake_B, self.fake_A = generator(a, "GA"), generator(b, "GB")
            self.cyc_A = generator(self.fake_B, "GB")
            self.cyc_B = generator(self.fake_A, "GA")
            self.infer_program = self.program.clone()
            diff_A = fluid.layers.abs(fluid.layers.elementwise_sub(x=a, y=self.cyc_A))
            diff_B = fluid.layers.abs(fluid.layers.elementwise_sub(x=b, y=self.cyc_B))
            cyc_A_loss = fluid.layers.reduce_mean(diff_A) * lambda_A
            cyc_B_loss = fluid.layers.reduce_mean(diff_B) * lambda_B
            fake_A, fake_B = (
                discriminator(self.fake_A, "DA"),
                discriminator(self.fake_B, "DB"),
            )
            gan = fluid.layers.reduce_mean(
                fluid.layers.square(fake_B - 1)
            ) + fluid.layers.reduce_mean(fluid.layers.square(fake_A - 1))
            idt_A = (
                fluid.layers.reduce_mean(fluid.layers.abs(generator(b, "GA") - b))
                * lambda_B
                * lambda_identity
            )
            self.g_loss = fluid.layers.elementwise_add(
                cyc_A_loss + cyc_B_loss, gan + idt_A
            )
            make_optimizer(self.g_loss, ("GA", "GB"), self.program)


class DTrainer:
    def __init__(self, real, fake_pool, name):
        self.program = fluid.default_main_program().clone()
        with fluid.program_guard(self.program):
            real_rec = discriminator(real, name)
            fake_rec = discriminator(fake_pool, name)
            self.d_loss = (
                fluid.layers.square(fake_rec) + fluid.layers.square(real_rec - 1)
            ) / 2.0
            self.d_loss = fluid.layers.reduce_mean(self.d_loss)
            make_optimizer(self.d_loss, (name,), self.program)


def train():
    a, b, pool_a, pool_b = [
        fluid.layers.data(name=n, shape=SHAPE, append_batch_size=False, dtype="float32")
        for n in ("input_A", "input_B", "fake_pool_A", "fake_pool_B")
    ]
    gen = GTrainer(a, b)
    d_a, d_b = DTrainer(a, pool_a, "DA"), DTrainer(b, pool_b, "DB")
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    rng = np.random.RandomState(0)
    scope, done = fluid.global_scope(), set()
    for t in (gen, d_a, d_b):
        for p in t.program.global_block().all_parameters():
            if p.name.endswith("_w") and p.name not in done:
                done.add(p.name)
                scope.find_var(p.name).get_tensor().set(
                    rng.normal(0, 0.1, p.shape).astype("float32"), fluid.CPUPlace()
                )

    build = fluid.BuildStrategy()
    build.enable_inplace = True
    build.memory_optimize = False
    programs = [
        fluid.CompiledProgram(t.program).with_data_parallel(
            loss_name=loss.name, build_strategy=build, places=fluid.cpu_places(1)
        )
        for t, loss in ((gen, gen.g_loss), (d_a, d_a.d_loss), (d_b, d_b.d_loss))
    ]
    for batch in range(5):
        data_A = rng.uniform(-1, 1, [1] + SHAPE[1:]).astype("float32")
        data_B = np.sign(rng.uniform(-1, 1, [1] + SHAPE[1:])).astype("float32")
        g, fake_A, fake_B = exe.run(
            programs[0],
            fetch_list=[gen.g_loss, gen.fake_A, gen.fake_B],
            feed={"input_A": data_A, "input_B": data_B},
        )
        la = exe.run(
            programs[1],
            fetch_list=[d_a.d_loss],
            feed={"input_A": data_A, "fake_pool_A": fake_A},
        )[0]
        lb = exe.run(
            programs[2],
            fetch_list=[d_b.d_loss],
            feed={"input_B": data_B, "fake_pool_B": fake_B},
        )[0]
        print(
            f"batch{batch}: g_loss: {g[0]:.5f} d_A_loss: {la[0]:.6f} d_B_loss: {lb[0]:.6f}"
        )
    out = exe.run(
        gen.infer_program,
        fetch_list=[gen.cyc_A, gen.cyc_B],
        feed={"input_A": data_A, "input_B": data_B},
    )
    print(
        "cycle %.6f %.6f"
        % tuple(np.abs(o - d).mean() for o, d in zip(out, (data_A, data_B)))
    )


if __name__ == "__main__":
    train()

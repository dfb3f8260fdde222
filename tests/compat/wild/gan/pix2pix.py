"""pix2pix-like: a U-Net of conv2d_transpose, two programs of one default."""

import argparse
import functools
import numpy as np
import paddle.fluid as fluid


def norm(x, name, mode="instance_norm"):
    if mode == "instance_norm":
        return fluid.layers.instance_norm(
            x,
            name=name,
            param_attr=fluid.ParamAttr(
                name=name + "_scale",
                initializer=fluid.initializer.Constant(1.0),
                trainable=False,
            ),
            bias_attr=fluid.ParamAttr(
                name=name + "_offset",
                initializer=fluid.initializer.Constant(0.0),
                trainable=False,
            ),
        )
    return fluid.layers.batch_norm(
        x,
        name=name,
        param_attr=fluid.ParamAttr(name=name + "_w"),
        bias_attr=fluid.ParamAttr(name=name + "_b"),
        moving_mean_name=name + "_mean",
        moving_variance_name=name + "_var",
    )


def conv(x, nf, k, stride, padding, name, mode=None, relu=None):
    x = fluid.layers.conv2d(
        x,
        nf,
        k,
        stride=stride,
        padding=padding,
        name=name,
        param_attr=fluid.ParamAttr(
            name=name + "_w",
            initializer=fluid.initializer.NormalInitializer(scale=0.02),
        ),
        bias_attr=fluid.ParamAttr(name=name + "_b") if mode is None else False,
    )
    if mode:
        x = norm(x, name + "_norm", mode)
    if relu is not None:
        x = fluid.layers.leaky_relu(x, alpha=relu)
    return x


def deconv(x, nf, name, mode, outpadding=None, output_size=None):
    x = fluid.layers.conv2d_transpose(
        fluid.layers.relu(x),
        nf,
        filter_size=4,
        stride=2,
        padding=1,
        name=name,
        output_size=output_size,
        param_attr=fluid.ParamAttr(name=name + "_w"),
        bias_attr=False,
    )
    if outpadding:
        x = fluid.layers.pad2d(x, paddings=outpadding, mode="constant", pad_value=0.0)
    return norm(x, name + "_norm", mode)


def generator(x, mode):
    d1 = conv(x, 4, 4, 2, 1, "generator_d1")
    d2 = conv(fluid.layers.leaky_relu(d1, 0.2), 6, 4, 2, 1, "generator_d2", mode)
    d3 = conv(fluid.layers.leaky_relu(d2, 0.2), 8, 4, 2, 1, "generator_d3")
    u3 = deconv(d3, 6, "generator_u3", mode)
    u2 = deconv(
        fluid.layers.concat([u3, d2], 1), 4, "generator_u2", mode, output_size=[8, 8]
    )
    u1 = fluid.layers.conv2d_transpose(
        fluid.layers.relu(fluid.layers.concat([u2, d1], 1)),
        3,
        output_size=[16, 16],
        stride=2,
        padding=1,
        filter_size=4,
        param_attr=fluid.ParamAttr(name="generator_u1_w"),
        bias_attr=fluid.ParamAttr(name="generator_u1_b"),
        act="tanh",
    )
    return u1


def discriminator(a, b, mode):
    x = fluid.layers.concat([a, b], axis=1)
    x = conv(x, 4, 4, 2, 1, "discriminator_1", relu=0.2)
    x = conv(x, 6, 4, 1, 1, "discriminator_2", mode, relu=0.2)
    return conv(x, 1, 4, 1, 1, "discriminator_3")


def ganloss(pred, real, gan_mode):
    if gan_mode == "lsgan":
        t = fluid.layers.fill_constant_batch_size_like(
            pred, pred.shape, "float32", 1.0 if real else 0.0
        )
        return fluid.layers.mean(fluid.layers.square(pred - t))
    if gan_mode == "vanilla":
        t = fluid.layers.zeros_like(pred) + (1.0 if real else 0.0)
        t.stop_gradient = True
        return fluid.layers.mean(
            fluid.layers.sigmoid_cross_entropy_with_logits(pred, t)
        )
    return fluid.layers.mean(
        fluid.layers.relu(1.0 - pred) if real else fluid.layers.relu(1.0 + pred)
    )


class GTrainer(object):
    def __init__(self, data, cfg):
        self.program = fluid.default_main_program().clone()
        with fluid.program_guard(self.program):
            a, b = data
            self.fake = generator(a, cfg.norm)
            self.fake.persistable = True
            self.infer_program = self.program.clone()
            pred = discriminator(a, self.fake, cfg.norm)
            self.gan = ganloss(pred, True, cfg.gan_mode)
            self.l1 = (
                fluid.layers.reduce_mean(
                    fluid.layers.abs(fluid.layers.elementwise_sub(x=b, y=self.fake))
                )
                * 10.0
            )
            self.loss = fluid.layers.elementwise_add(self.l1, self.gan)
            lr = fluid.layers.piecewise_decay([3, 6], [0.01, 0.005, 0.0025])
            params = [
                p.name
                for p in self.program.global_block().all_parameters()
                if p.name.startswith("generator")
            ]
            self.optimizer = fluid.optimizer.Adam(
                lr, beta1=0.5, beta2=0.999, name="net_G"
            )
            self.optimizer.minimize(self.loss, parameter_list=params)


class DTrainer(object):
    def __init__(self, data, cfg):
        self.program = fluid.default_main_program().clone()
        with fluid.program_guard(self.program):
            a, b, fake = data
            self.real_loss = ganloss(discriminator(a, b, cfg.norm), True, cfg.gan_mode)
            self.fake_loss = ganloss(
                discriminator(a, fake, cfg.norm), False, cfg.gan_mode
            )
            self.loss = 0.5 * (self.real_loss + self.fake_loss)
            params = [
                p.name
                for p in self.program.global_block().all_parameters()
                if p.name.startswith("discriminator")
            ]
            self.optimizer = fluid.optimizer.Adam(
                learning_rate=0.01, beta1=0.5, name="net_D"
            )
            self.optimizer.minimize(self.loss, parameter_list=params)


def main(cfg):
    a = fluid.layers.data("a", [3, 16, 16], dtype="float32")
    b = fluid.layers.data("b", [3, 16, 16], dtype="float32")
    f = fluid.layers.data("fake", [3, 16, 16], dtype="float32")
    gen = GTrainer([a, b], cfg)
    dis = DTrainer([a, b, f], cfg)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    rng = np.random.RandomState(3)
    names = {}
    for prog in (gen.program, dis.program):
        for p in prog.all_parameters():
            names[p.name] = p
    for n in sorted(names):
        if len(names[n].shape) == 4:
            fluid.global_scope().find_var(n).get_tensor().set(
                (rng.randn(*names[n].shape) * 0.1).astype("float32"), fluid.CPUPlace()
            )
    build = fluid.BuildStrategy()
    build.enable_inplace = True
    g_prog = fluid.CompiledProgram(gen.program).with_data_parallel(
        loss_name=gen.loss.name, build_strategy=build
    )
    d_prog = fluid.CompiledProgram(dis.program).with_data_parallel(
        loss_name=dis.loss.name, build_strategy=build
    )
    for i in range(6):
        av = rng.rand(2, 3, 16, 16).astype("float32")
        bv = 1 - av
        g, gl1, fake = exe.run(
            g_prog, fetch_list=[gen.gan, gen.l1, gen.fake], feed={"a": av, "b": bv}
        )
        dr, df = exe.run(
            d_prog,
            fetch_list=[dis.real_loss.name, dis.fake_loss.name],
            feed={"a": av, "b": bv, "fake": fake},
        )
        print(
            "batch%d: d_real %.5f d_fake %.5f g_gan %.5f g_l1 %.5f"
            % (i, dr[0], df[0], g[0], gl1[0])
        )
    (out,) = exe.run(gen.infer_program, feed={"a": av, "b": bv}, fetch_list=[gen.fake])
    image = (np.squeeze(out[0]).transpose([1, 2, 0]) + 1) * 127.5
    print(image.shape, "%.3f" % image.mean())


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    add = functools.partial(p.add_argument)
    add("--norm", default="instance_norm")
    add("--gan_mode", default="vanilla")
    main(p.parse_args())

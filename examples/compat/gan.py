"""Two networks against each other, in the style of the 1.x tutorial."""

from __future__ import print_function

import numpy as np
import paddle.fluid as fluid

NOISE_SIZE = 8
DATA_SIZE = 4
LEARNING_RATE = 2e-3


def generator(z, name="G"):
    with fluid.unique_name.guard(name + "_"):
        hidden = fluid.layers.fc(z, size=16, act="relu")
        return fluid.layers.fc(hidden, size=DATA_SIZE)


def discriminator(images, name="D"):
    with fluid.unique_name.guard(name + "_"):
        hidden = fluid.layers.fc(images, size=16)
        hidden = fluid.layers.leaky_relu(hidden, alpha=0.2)
        return fluid.layers.fc(hidden, size=1)


def get_params(program, prefix):
    all_params = program.global_block().all_parameters()
    return [t.name for t in all_params if t.name.startswith(prefix)]


def loss(x, label):
    return fluid.layers.mean(
        fluid.layers.sigmoid_cross_entropy_with_logits(x=x, label=label)
    )


def set_parameters(programs, place):
    random = np.random.RandomState(9)
    done = set()
    for program in programs:
        for param in program.global_block().all_parameters():
            if param.name not in done:
                done.add(param.name)
                value = (0.3 * random.randn(*param.shape)).astype("float32")
                scope = fluid.global_scope()
                scope.find_var(param.name).get_tensor().set(value, place)


def main():
    d_program, dg_program = fluid.Program(), fluid.Program()
    startup = fluid.default_startup_program()

    with fluid.program_guard(d_program, startup):
        img = fluid.layers.data(name="img", shape=[DATA_SIZE], dtype="float32")
        label = fluid.layers.data(name="label", shape=[1], dtype="float32")
        d_loss = loss(discriminator(img), label)

    with fluid.program_guard(dg_program, startup):
        noise = fluid.layers.data(name="noise", shape=[NOISE_SIZE], dtype="float32")
        g_img = generator(noise)
        g_program = dg_program.clone()
        g_program_test = dg_program.clone(for_test=True)
        ones = fluid.layers.fill_constant_batch_size_like(
            input=noise, dtype="float32", shape=[-1, 1], value=1.0
        )
        dg_loss = loss(discriminator(g_img), ones)

    opt = fluid.optimizer.Adam(learning_rate=LEARNING_RATE)
    opt.minimize(loss=d_loss, parameter_list=get_params(d_program, "D"))
    opt = fluid.optimizer.Adam(learning_rate=LEARNING_RATE)
    opt.minimize(
        loss=dg_loss,
        startup_program=startup,
        parameter_list=get_params(g_program, "G"),
    )

    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(startup)
    set_parameters([d_program, dg_program], place)
    random = np.random.RandomState(1)
    for step in range(15):
        z = random.uniform(-1.0, 1.0, [16, NOISE_SIZE]).astype("float32")
        real = (random.randn(16, DATA_SIZE) + 2.0).astype("float32")
        (fake,) = exe.run(g_program_test, feed={"noise": z}, fetch_list=[g_img])
        data = np.concatenate([real, fake])
        labels = np.concatenate([np.ones([16, 1]), np.zeros([16, 1])]).astype("float32")
        d_np = exe.run(
            d_program, feed={"img": data, "label": labels}, fetch_list=[d_loss]
        )[0]
        dg_np = exe.run(dg_program, feed={"noise": z}, fetch_list=[dg_loss])[0]
        print("step %d D loss %.7f DG loss %.7f" % (step, d_np, dg_np))


if __name__ == "__main__":
    main()

"""DCGAN: two programs share the discriminator's parameters by their names."""


import numpy as np
import paddle.fluid as fluid
import six

gf_dim, df_dim, noise_dim, side = 8, 8, 10, 8
use_cudnn = False


def bn(x, name=None, act="relu"):
    return fluid.layers.batch_norm(
        x,
        param_attr=name + "1",
        bias_attr=name + "2",
        moving_mean_name=name + "3",
        moving_variance_name=name + "4",
        name=name,
        act=act,
    )


def conv(x, num_filters, name=None, act=None):
    return fluid.nets.simple_img_conv_pool(
        input=x,
        filter_size=5,
        num_filters=num_filters,
        pool_size=2,
        pool_stride=2,
        conv_padding=2,
        param_attr=name + "w",
        bias_attr=name + "b",
        use_cudnn=use_cudnn,
        act=act,
    )


def fc(x, num_filters, name=None, act=None):
    return fluid.layers.fc(
        input=x, size=num_filters, act=act, param_attr=name + "w", bias_attr=name + "b"
    )


def deconv(
    x,
    num_filters,
    name=None,
    filter_size=5,
    stride=2,
    dilation=1,
    padding=2,
    output_size=None,
    act=None,
):
    return fluid.layers.conv2d_transpose(
        input=x,
        param_attr=name + "w",
        bias_attr=name + "b",
        num_filters=num_filters,
        output_size=output_size,
        filter_size=filter_size,
        stride=stride,
        dilation=dilation,
        padding=padding,
        use_cudnn=use_cudnn,
        act=act,
    )


def D(x):
    x = fluid.layers.reshape(x=x, shape=[-1, 1, side, side])
    x = conv(x, df_dim, act="leaky_relu", name="conv1")
    x = bn(conv(x, df_dim * 2, name="conv2"), act="leaky_relu", name="bn1")
    x = bn(fc(x, 32, name="fc1"), act="leaky_relu", name="bn2")
    return fc(x, 1, name="fc2", act="sigmoid")


def G(x):
    x = bn(fc(x, 32, name="fc3"), name="bn3")
    x = bn(fc(x, gf_dim * 2 * side // 4 * side // 4, name="fc4"), name="bn4")
    x = fluid.layers.reshape(x, [-1, gf_dim * 2, side // 4, side // 4])
    x = deconv(
        x, gf_dim * 2, act="relu", output_size=[side // 2, side // 2], name="deconv1"
    )
    x = deconv(
        x,
        num_filters=1,
        filter_size=5,
        padding=2,
        act="tanh",
        output_size=[side, side],
        name="deconv2",
    )
    return fluid.layers.reshape(x, shape=[-1, side * side])


def loss(x, label):
    return fluid.layers.mean(
        fluid.layers.sigmoid_cross_entropy_with_logits(x=x, label=label)
    )


def main():
    d_program = fluid.Program()
    dg_program = fluid.Program()
    with fluid.program_guard(d_program):
        img = fluid.data(name="img", shape=[None, side * side], dtype="float32")
        label = fluid.data(name="label", shape=[None, 1], dtype="float32")
        d_logit = D(img)
        d_loss = loss(d_logit, label)
    with fluid.program_guard(dg_program):
        noise = fluid.data(name="noise", shape=[None, noise_dim], dtype="float32")
        g_img = G(x=noise)
        g_program = dg_program.clone()
        g_program_test = dg_program.clone(for_test=True)
        dg_logit = D(g_img)
        noise_shape = fluid.layers.shape(noise)
        dg_loss = loss(
            dg_logit,
            fluid.layers.fill_constant(
                dtype="float32", shape=[noise_shape[0], 1], value=1.0
            ),
        )

    opt = fluid.optimizer.Adam(learning_rate=2e-4)
    opt.minimize(loss=d_loss)
    parameters = [p.name for p in g_program.global_block().all_parameters()]
    opt.minimize(loss=dg_loss, parameter_list=parameters)

    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    rng = np.random.RandomState(4)
    for prog in (d_program, dg_program):
        for p in prog.global_block().all_parameters():
            if not p.name.endswith(("1", "2", "3", "4")):
                fluid.global_scope().find_var(p.name).get_tensor().set(
                    (rng.randn(*p.shape) * 0.1).astype("float32"), fluid.CPUPlace()
                )

    batch_size = 6
    for batch_id in six.moves.xrange(6):
        real = np.tanh(rng.randn(batch_size, side * side) + 1).astype("float32")
        noise_data = rng.uniform(-1.0, 1.0, [batch_size, noise_dim]).astype("float32")
        generated = exe.run(g_program, feed={"noise": noise_data}, fetch_list=[g_img])[
            0
        ]
        ones = np.ones([batch_size, 1]).astype("float32")
        d_loss_1 = exe.run(
            d_program, feed={"img": generated, "label": 0 * ones}, fetch_list=[d_loss]
        )[0][0]
        d_loss_2 = exe.run(
            d_program, feed={"img": real, "label": ones}, fetch_list=[d_loss]
        )[0][0]
        for _ in six.moves.xrange(2):
            noise_data = rng.uniform(-1.0, 1.0, [batch_size, noise_dim]).astype(
                "float32"
            )
            dg_loss_np = exe.run(
                dg_program, feed={"noise": noise_data}, fetch_list=[dg_loss]
            )[0][0]
        print(
            "batch id = %d, d_loss = %.6f, g_loss = %.6f"
            % (batch_id, d_loss_1 + d_loss_2, dg_loss_np)
        )
    sample = exe.run(
        g_program_test, feed={"noise": noise_data}, fetch_list=[g_img.name]
    )[0]
    print("sample mean %.6f std %.6f" % (sample.mean(), sample.std()))


if __name__ == "__main__":
    # optimizers of two programs write into one startup program
    with fluid.program_guard(fluid.Program(), fluid.default_startup_program()):
        main()

"""WGAN with gradient penalty: gradients of gradients, by fluid.gradients."""
import numpy as np
import paddle.fluid as fluid
import paddle.fluid.layers as L

LAMBDA, DIM, BATCH = 10., 16, 6


def linear(x, size, name, act=None):
    return L.fc(x, size, act=act,
                param_attr=fluid.ParamAttr(
                    name=name + '.w', initializer=fluid.initializer.Xavier()),
                bias_attr=fluid.ParamAttr(name=name + '.b'))


def critic(x):
    x = linear(x, DIM, 'Discriminator.1', 'tanh')
    x = linear(x, DIM, 'Discriminator.2', 'sigmoid')
    return linear(x, 1, 'Discriminator.3')


def generator(z):
    return linear(linear(z, DIM, 'Generator.1', 'relu'), 2, 'Generator.2')


critic_program, gen_program = fluid.Program(), fluid.Program()
startup = fluid.Program()
with fluid.program_guard(critic_program, startup):
    real = fluid.data('real', [BATCH, 2])
    fake = fluid.data('fake', [BATCH, 2])
    alpha = fluid.data('alpha', [BATCH, 1])
    mixed = L.elementwise_add(real, L.elementwise_mul(fake - real, alpha, axis=0))
    mixed.stop_gradient = False
    slopes = fluid.gradients([critic(mixed)], [mixed])[0]
    slopes = L.sqrt(L.reduce_sum(L.square(slopes), dim=[1]) + 1e-12)
    penalty = L.reduce_mean(L.square(slopes - 1.))
    critic_loss = L.mean(critic(fake)) - L.mean(critic(real)) + LAMBDA * penalty
    names = [p.name for p in critic_program.all_parameters()]
    fluid.optimizer.Adam(1e-2, beta1=0.5, beta2=0.9).minimize(
        critic_loss, parameter_list=names)
with fluid.program_guard(gen_program, startup):
    noise = fluid.data('noise', [BATCH, 3])
    made = generator(noise)
    gen_test = gen_program.clone(for_test=True)
    gen_loss = -1.0 * L.mean(critic(made))
    names = [p.name for p in gen_program.all_parameters() if 'Gener' in p.name]
    fluid.optimizer.Adam(1e-2, beta1=0.5, beta2=0.9).minimize(
        gen_loss, parameter_list=names)

if __name__ == '__main__':
    exe = fluid.Executor()
    exe.run(startup)
    rng = np.random.RandomState(21)
    weights = {p.name: p for prog in (critic_program, gen_program)
               for p in prog.all_parameters()}
    for name in sorted(weights):
        if name.endswith('.w'):
            value = 0.5 * rng.randn(*weights[name].shape)
            fluid.global_scope().find_var(name).get_tensor().set(
                value.astype('float32'), exe.place)
    draw = lambda *shape: rng.randn(*shape).astype('float32')
    for i in range(6):
        for _ in range(2):
            fakes, = exe.run(gen_test, feed={'noise': draw(BATCH, 3)}, fetch_list=[made])
            values = exe.run(
                critic_program, fetch_list=[critic_loss, penalty],
                feed={'real': draw(BATCH, 2) * 0.1 + 1, 'fake': fakes,
                      'alpha': rng.rand(BATCH, 1).astype('float32')})
        g, = exe.run(gen_program, feed={'noise': draw(BATCH, 3)}, fetch_list=[gen_loss])
        print('iter %d critic %.6f penalty %.6f generator %.6f' % (
            i, values[0], values[1], g))

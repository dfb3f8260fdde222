# A variational autoencoder. The noise is fed, so that every run draws the same.
import numpy as np
import paddle.fluid as fluid
from paddle.fluid import layers

Z = 3


def encode(x):
    h = layers.fc(x, 16, act="softplus", name="enc")
    return layers.fc(h, Z, name="mu"), layers.fc(h, Z, name="logvar")


def decode(z):
    h = layers.fc(z, 16, act="swish", name="dec")
    return layers.fc(h, 12, name="out")


x = fluid.data("x", [-1, 12], "float32")
eps = fluid.data("eps", [-1, Z], "float32")
beta = layers.create_global_var([1], 0.1, "float32", persistable=True, name="beta")
mu, logvar = encode(x)
z = mu + layers.exp(0.5 * logvar) * eps
logits = decode(z)
reconstruction = layers.reduce_sum(
    layers.sigmoid_cross_entropy_with_logits(logits, x), dim=1
)
kl = -0.5 * layers.reduce_sum(1.0 + logvar - layers.square(mu) - layers.exp(logvar), 1)
posterior = layers.Normal(
    layers.zeros([2, Z], "float32"), layers.ones([2, Z], "float32")
)
prior = layers.Normal(0.5, 2.0)
check = layers.reduce_sum(
    posterior.kl_divergence(
        layers.Normal(
            layers.fill_constant([2, Z], "float32", 0.5),
            layers.fill_constant([2, Z], "float32", 2.0),
        )
    )
)
elbo = layers.reduce_mean(reconstruction + beta * kl)
layers.increment(beta, 0.1)
test = fluid.default_main_program().clone(for_test=True)
optimizer = fluid.optimizer.AdamaxOptimizer(
    learning_rate=layers.inverse_time_decay(0.02, decay_steps=4, decay_rate=0.5)
)
_, grads = optimizer.minimize(elbo)

exe = fluid.Executor()
exe.run(fluid.default_startup_program())
rng = np.random.RandomState(6)
for p, g in grads:
    fluid.global_scope().find_var(p.name).get_tensor().set(
        rng.uniform(-0.4, 0.4, p.shape).astype(np.float32), fluid.CPUPlace()
    )
for i in range(10):
    code = rng.randint(0, 2, (8, 3))
    data = np.repeat(code, 4, axis=1).astype("float32")
    loss, r, k, b = exe.run(
        feed={"x": data, "eps": rng.randn(8, Z).astype("float32")},
        fetch_list=[elbo, reconstruction, kl, beta],
    )
    print("%2d elbo %.5f rec %.5f kl %.6f beta %.2f" % (i, loss, r.mean(), k.mean(), b))
print(
    "kl %.6f prior entropy %.6f"
    % (
        exe.run(
            feed={"x": data, "eps": np.zeros((8, Z), "float32")}, fetch_list=[check]
        )[0],
        exe.run(
            feed={"x": data, "eps": np.zeros((8, Z), "float32")},
            fetch_list=[prior.entropy()],
        )[0],
    )
)

"""Self-attention, a VAE, a graph layer: mathematics and indexing."""

import numpy as np
import paddle.fluid as fluid
from paddle.fluid import layers as L


def attention(q, k, v, heads, bias=None, name="att"):
    d = q.shape[-1]

    def proj(x, n):
        return L.fc(x, d, num_flatten_dims=2, bias_attr=False, name=name + n)

    def split(x):
        return L.transpose(L.reshape(x, [0, 0, heads, d // heads]), [0, 2, 1, 3])

    q, k, v = [split(proj(x, n)) for x, n in ((q, "q"), (k, "k"), (v, "v"))]
    w = L.matmul(L.scale(q, (d // heads) ** -0.5), k, transpose_y=True)
    if bias is not None:
        w = L.elementwise_add(w, bias)
    w = L.softmax(w)
    o = L.matmul(
        L.dropout(w, 0.0, dropout_implementation="upscale_in_train", is_test=False), v
    )
    return L.reshape(L.transpose(o, [0, 2, 1, 3]), [0, 0, d])


def gcn(x, src, dst, n):
    msg = L.gather(L.fc(x, 4, bias_attr=False, name="gcn"), src)
    deg = L.scatter(
        L.fill_constant([n, 1], "float32", 0.0),
        dst,
        L.ones([6, 1], "float32"),
        overwrite=False,
    )
    agg = L.scatter_nd_add(
        L.fill_constant([n, 4], "float32", 0.0), L.unsqueeze(dst, [1]), msg
    )
    return agg / (deg + 1.0)


def main():
    B, T, D = 2, 4, 6
    tok = fluid.data("tok", [B, T], "int64")
    length = fluid.data("length", [B], "int64")
    eps = fluid.data("eps", [B, 3])
    e = fluid.embedding(tok, [9, D], param_attr="emb")
    pos = L.add_position_encoding(e, 1.0, 1.0)
    mask = L.sequence_mask(length, T, "float32")
    bias = L.unsqueeze((mask - 1.0) * 1e4, [1, 2])
    bias.stop_gradient = True
    tri = L.assign(np.triu(np.full((T, T), -1e4, "float32"), 1))
    h = L.layer_norm(
        pos + attention(pos, pos, pos, 2, bias + tri), begin_norm_axis=2, name="ln"
    )
    h = h + L.fc(
        L.gelu(L.fc(h, 8, num_flatten_dims=2, name="f1")),
        D,
        num_flatten_dims=2,
        name="f2",
    )
    pooled = L.reduce_sum(h * L.unsqueeze(mask, [2]), 1) / L.reduce_sum(
        mask, 1, keep_dim=True
    )
    mu, logvar = L.split(L.fc(pooled, 6, name="vae"), 2, dim=-1)
    z = mu + L.exp(0.5 * logvar) * eps
    kl = -0.5 * L.reduce_sum(1.0 + logvar - L.square(mu) - L.exp(logvar), 1)
    centers = L.create_parameter([3, 3], "float32", name="centers")
    diff = L.expand(L.unsqueeze(z, [1]), [1, 3, 1]) - L.unsqueeze(centers, [0])
    dist = L.reduce_sum(L.pow(diff, 2.0), -1)
    gmm = -1.0 * L.log(L.reduce_mean(L.exp(-0.5 * dist), dim=-1) + 1e-8)
    logit = (
        L.log(L.clip(L.sigmoid(z), 1e-3, 1 - 1e-3))
        - L.log1p(-1.0 * L.clip(L.sigmoid(z), 1e-3, 0.999))
        if hasattr(L, "log1p")
        else z
    )
    node = gcn(
        L.reshape(h, [B * T, D]),
        L.assign(np.array([0, 1, 2, 3, 4, 5], "int32")),
        L.assign(np.array([1, 2, 3, 4, 5, 1], "int32")),
        B * T,
    )
    vals, idx = L.topk(L.reshape(h, [B, T * D]), 3)
    srt, order = L.argsort(dist, axis=-1)
    parts = [
        L.mean(kl),
        L.mean(gmm),
        L.reduce_mean(L.abs(node)),
        L.reduce_mean(vals),
        L.reduce_sum(L.slice(srt, [1], [0], [1])),
        L.mean(L.stanh(logit)),
        L.reduce_mean(L.cumsum(z, axis=1)),
        L.mean(L.relu6(z)),
        L.reduce_mean(L.stack(L.unstack(h, 1), 0)),
        L.mean(L.reverse(z, 1) * z),
        L.mean(L.elementwise_max(z, mu)),
        L.mean(L.softplus(z)),
        L.mean(L.l2_normalize(z, 1)),
        L.reduce_mean(L.index_sample(z, L.assign(np.array([[0], [2]], "int64"))))
        if hasattr(L, "index_sample")
        else L.mean(z),
        L.reduce_max(L.diag(L.reshape(L.slice(mu, [0], [0], [1]), [3]))),
        L.mean(L.strided_slice(h, [1], [0], [4], [2])),
        L.mean(L.gather_nd(h, L.assign(np.array([[0, 1], [1, 2]], "int64")))),
        L.mean(L.soft_relu(z)),
        L.mean(L.multiplex([z, mu], L.assign(np.array([[0], [1]], "int32")))),
        L.mean(L.brelu(z, -1.0, 1.0)),
        L.mean(L.hard_sigmoid(z)),
        L.mean(L.sign(z)),
        L.reduce_prod(L.sigmoid(z)),
        L.mean(L.linspace(0.0, 1.0, 5, "float32")),
        L.mean(L.eye(3)),
        L.mean(L.expand_as(L.slice(z, [0], [0], [1]), z)),
    ]
    loss = L.sums([L.reshape(p, [1]) for p in parts])
    fluid.optimizer.Adam(0.01).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    rng = np.random.RandomState(0)
    for p in sorted(
        fluid.default_main_program().all_parameters(), key=lambda v: v.name
    ):
        if len(p.shape) > 1:
            fluid.global_scope().find_var(p.name).get_tensor().set(
                (rng.randn(*p.shape) * 0.4).astype("float32"), fluid.CPUPlace()
            )
    for i in range(3):
        out = exe.run(
            feed={
                "tok": rng.randint(0, 9, (B, T)),
                "length": np.array([2, 4]),
                "eps": rng.randn(B, 3).astype("float32"),
            },
            fetch_list=[loss, idx, order] + parts,
        )
        print(
            i,
            "%.4f" % float(out[0]),
            out[1].shape,
            out[2].tolist(),
            " ".join("%.4f" % float(np.array(o)) for o in out[3:]),
        )


if __name__ == "__main__":
    main()

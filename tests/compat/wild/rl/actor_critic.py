"""DDPG with soft updates, A2C with entropy, dueling DQN with copies."""

import copy
import numpy as np
import paddle.fluid as fluid
from paddle.fluid import layers
from paddle.fluid.framework import Parameter

rng = np.random.RandomState(0)


def set_all(progs, seed=2):
    r = np.random.RandomState(seed)
    d = {}
    for p in progs:
        for v in p.list_vars():
            if isinstance(v, Parameter):
                d[v.name] = v
    for n in sorted(d):
        fluid.global_scope().find_var(n).get_tensor().set(
            (r.randn(*d[n].shape) * 0.4).astype("float32"), fluid.CPUPlace()
        )


class Model(object):
    def __init__(self, prefix):
        self.p = prefix

    def policy(self, obs):
        h = layers.fc(
            obs, 8, act="relu", param_attr=self.p + "fc1.w", bias_attr=self.p + "fc1.b"
        )
        return layers.fc(
            h,
            2,
            act="tanh",
            param_attr=fluid.ParamAttr(name=self.p + "fc2.w"),
            bias_attr=fluid.ParamAttr(name=self.p + "fc2.b"),
        )

    def value(self, obs, act):
        h = layers.concat([obs, act], 1)
        h = layers.fc(
            h, 8, act="relu", param_attr=self.p + "q1.w", bias_attr=self.p + "q1.b"
        )
        return layers.squeeze(
            layers.fc(h, 1, param_attr=self.p + "q2.w", bias_attr=self.p + "q2.b"),
            axes=[1],
        )


def ddpg(tau=0.1, gamma=0.9):
    model, target = Model("m_"), Model("t_")
    startup = fluid.Program()
    pred, actor, critic, sync = [fluid.Program() for _ in range(4)]
    with fluid.program_guard(pred, startup):
        obs = layers.data("obs", [3])
        act_pred = model.policy(obs)
    with fluid.program_guard(actor, startup):
        obs = layers.data("obs", [3])
        a_loss = layers.mean(-1.0 * model.value(obs, model.policy(obs)))
        names = [
            p.name for p in actor.global_block().all_parameters() if "fc" in p.name
        ]
        fluid.optimizer.AdamOptimizer(1e-2).minimize(a_loss, parameter_list=names)
    with fluid.program_guard(critic, startup):
        obs = layers.data("obs", [3])
        act = layers.data("act", [2])
        reward = layers.data("reward", [], dtype="float32")
        next_obs = layers.data("next_obs", [3])
        terminal = layers.data("terminal", [], dtype="bool")
        nq = target.value(next_obs, target.policy(next_obs))
        term = layers.cast(terminal, "float32")
        tq = reward + (1.0 - term) * gamma * nq
        tq.stop_gradient = True
        q = model.value(obs, act)
        c_loss = layers.reduce_mean(layers.square_error_cost(q, tq))
        fluid.optimizer.AdamOptimizer(
            1e-2, regularization=fluid.regularizer.L2DecayRegularizer(1e-3)
        ).minimize(
            c_loss,
            parameter_list=[
                p.name for p in critic.all_parameters() if p.name.startswith("m_q")
            ],
        )
    with fluid.program_guard(sync, startup):
        vars_ = sorted(
            (
                v
                for v in critic.list_vars()
                if isinstance(v, Parameter) and v.name.startswith("t_")
            ),
            key=lambda v: v.name,
        )
        for t in vars_:
            src = sync.global_block().create_parameter(
                name="m_" + t.name[2:], shape=t.shape, dtype=t.dtype
            )
            dst = sync.global_block().create_parameter(
                name=t.name, shape=t.shape, dtype=t.dtype
            )
            layers.assign(tau * src + (1 - tau) * dst, dst)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    set_all([pred, actor, critic])
    for i in range(5):
        o = rng.randn(6, 3).astype("float32")
        a = exe.run(pred, feed={"obs": o}, fetch_list=[act_pred])[0]
        a = np.clip(a + 0.1 * rng.randn(*a.shape), -1, 1).astype("float32")
        cl = exe.run(
            critic,
            feed={
                "obs": o,
                "act": a,
                "reward": a.sum(1).astype("float32"),
                "next_obs": o + 0.1,
                "terminal": np.array([False] * 5 + [True]),
            },
            fetch_list=[c_loss],
        )[0]
        al = exe.run(actor, feed={"obs": o}, fetch_list=[a_loss])[0]
        exe.run(sync, use_program_cache=True)
        print("ddpg %d %.6f %.6f" % (i, cl, al))
    print("%.6f" % np.array(fluid.global_scope().find_var("t_q1.w").get_tensor()).sum())


def a2c():
    learn, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(learn, startup):
        obs = layers.data("obs", shape=[4], dtype="float32")
        actions = layers.data("actions", shape=[], dtype="int64")
        adv = layers.data("adv", shape=[], dtype="float32")
        target = layers.data("target", shape=[], dtype="float32")
        lr = layers.data("lr", shape=[1], dtype="float32", append_batch_size=False)
        ent_coef = layers.data(
            "ent", shape=[1], dtype="float32", append_batch_size=False
        )
        h = layers.fc(obs, 8, act="tanh")
        logits = layers.fc(h, 3)
        value = layers.squeeze(layers.fc(h, 1), [1])
        probs = layers.softmax(logits)
        logp = layers.log(probs)
        onehot = layers.one_hot(layers.unsqueeze(actions, [1]), 3)
        alp = layers.reduce_sum(-1.0 * onehot * logp, dim=-1)
        pi_loss = layers.reduce_sum(alp * adv)
        vf_loss = 0.5 * layers.reduce_sum(layers.square(value - target))
        dist = layers.Categorical(logits)
        entropy = layers.reduce_sum(dist.entropy())
        total = pi_loss + 0.5 * vf_loss - ent_coef * entropy
        clip = fluid.clip.GradientClipByGlobalNorm(clip_norm=0.5)
        fluid.clip.set_gradient_clip(clip)
        opt = fluid.optimizer.AdamOptimizer(lr)
        opt.minimize(total)
        kl = dist.kl_divergence(layers.Categorical(logits * 0.5))
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    set_all([learn])
    for i in range(4):
        out = exe.run(
            learn,
            feed={
                "obs": rng.randn(5, 4).astype("float32"),
                "actions": rng.randint(0, 3, 5).astype("int64"),
                "adv": rng.randn(5).astype("float32"),
                "target": rng.randn(5).astype("float32"),
                "lr": np.array([0.05 / (i + 1)], "float32"),
                "ent": np.array([0.01], "float32"),
            },
            fetch_list=[total, pi_loss, vf_loss, entropy, kl],
        )
        print("a2c %d" % i, " ".join("%.5f" % np.asarray(o).sum() for o in out))


def dqn():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        s = fluid.data("s", [None, 4])
        s_ = fluid.data("s_", [None, 4])

        def q(x, scope):
            if True:
                v = layers.fc(
                    x, 6, act="relu", param_attr=scope + "v.w", bias_attr=scope + "v.b"
                )
                a = layers.fc(v, 3, param_attr=scope + "a.w", bias_attr=scope + "a.b")
                val = layers.fc(
                    v, 1, param_attr=scope + "val.w", bias_attr=scope + "val.b"
                )
                return val + (a - layers.reduce_mean(a, dim=1, keep_dim=True))

        qe, qt = q(s, "eval/"), q(s_, "target/")
        best = layers.argmax(q(s_, "eval/"), axis=1)
        onehot = layers.one_hot(layers.unsqueeze(best, [1]), 3)
        nxt = layers.reduce_sum(qt * onehot, 1)
        a = fluid.data("a", [None, 2], "int32")
        r = fluid.data("r", [None], "float32")
        qa = layers.gather_nd(qe, a)
        tgt = r + 0.9 * nxt
        tgt.stop_gradient = True
        loss = layers.reduce_mean(
            layers.smooth_l1(layers.unsqueeze(qa, [1]), layers.unsqueeze(tgt, [1]))
        )
        params = [p.name for p in main.all_parameters() if p.name.startswith("eval")]
        fluid.optimizer.RMSProp(0.01).minimize(loss, parameter_list=params)
    copy_prog = fluid.Program()
    with fluid.program_guard(copy_prog):
        for n in params:
            v = main.global_block().var(n)
            e = copy_prog.global_block()._clone_variable(v)
            t = copy_prog.global_block()._clone_variable(
                main.global_block().var(n.replace("eval", "target"))
            )
            layers.assign(e, t)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    set_all([main])
    print(sorted(p.name for p in main.all_parameters()))
    for i in range(6):
        if i % 3 == 0:
            exe.run(copy_prog)
        idx = np.stack([np.arange(5), rng.randint(0, 3, 5)], 1).astype("int32")
        l, t = exe.run(
            main,
            feed={
                "s": rng.randn(5, 4).astype("float32"),
                "s_": rng.randn(5, 4).astype("float32"),
                "a": idx,
                "r": rng.rand(5).astype("float32"),
            },
            fetch_list=[loss, tgt],
        )
        print("dqn %d %.6f %.5f" % (i, l, t.sum()))


if __name__ == "__main__":
    for f in (ddpg, a2c, dqn):
        with fluid.scope_guard(fluid.Scope()):
            f()

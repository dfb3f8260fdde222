"""REINFORCE on a corridor, in PARL's division into model, algorithm and agent."""

import numpy as np
import paddle.fluid as fluid
from paddle.fluid import layers


class Model:
    def __init__(self, act_dim):
        self.act_dim = act_dim

    def policy(self, obs):
        hid = layers.fc(
            obs, size=10, act="tanh", param_attr="pi_1.w", bias_attr="pi_1.b"
        )
        return layers.fc(
            hid,
            size=self.act_dim,
            act="softmax",
            param_attr="pi_2.w",
            bias_attr="pi_2.b",
        )

    def value(self, obs):
        hid = layers.fc(obs, size=10, act="relu", param_attr="v_1.w", bias_attr="v_1.b")
        return layers.squeeze(
            layers.fc(hid, size=1, param_attr="v_2.w", bias_attr="v_2.b"), axes=[1]
        )


class A2C:
    def __init__(self, model, lr, vf_coeff, entropy_coeff):
        self.model, self.lr = model, lr
        self.vf_coeff, self.entropy_coeff = vf_coeff, entropy_coeff

    def learn(self, obs, action, reward):
        probs = self.model.policy(obs)
        values = self.model.value(obs)
        log_prob = -1.0 * layers.cross_entropy(probs, action)
        log_prob = layers.squeeze(log_prob, [1])
        advantage = reward - values
        advantage.stop_gradient = True
        pi_loss = -1.0 * layers.reduce_sum(log_prob * advantage)
        vf_loss = 0.5 * layers.reduce_sum(layers.square(values - reward))
        entropy = -1.0 * layers.reduce_sum(probs * layers.log(probs + 1e-8))
        total = pi_loss + self.vf_coeff * vf_loss - self.entropy_coeff * entropy
        optimizer = fluid.optimizer.RMSPropOptimizer(
            self.lr, grad_clip=fluid.clip.GradientClipByGlobalNorm(clip_norm=5.0)
        )
        optimizer.minimize(total)
        return total, pi_loss, vf_loss, entropy


class Agent:
    def __init__(self, algorithm, obs_dim):
        self.alg, self.obs_dim = algorithm, obs_dim
        self.build_program()
        self.exe = fluid.Executor(fluid.CPUPlace())
        self.exe.run(fluid.default_startup_program())

    def build_program(self):
        self.pred_program = fluid.Program()
        self.learn_program = fluid.Program()
        with fluid.program_guard(self.pred_program):
            obs = layers.data(name="obs", shape=[self.obs_dim], dtype="float32")
            self.act_prob = self.alg.model.policy(obs)
        with fluid.program_guard(self.learn_program):
            obs = layers.data(name="obs", shape=[self.obs_dim], dtype="float32")
            act = layers.data(name="act", shape=[1], dtype="int64")
            reward = layers.data(name="reward", shape=[], dtype="float32")
            self.costs = self.alg.learn(obs, act, reward)

    def sample(self, obs, rng):
        obs = np.expand_dims(obs, axis=0)
        prob = self.exe.run(
            self.pred_program,
            feed={"obs": obs.astype("float32")},
            fetch_list=[self.act_prob],
        )[0]
        prob = np.squeeze(prob, axis=0)
        return int(np.searchsorted(np.cumsum(prob), rng.rand() * 0.999)), prob

    def learn(self, obs, act, reward):
        return self.exe.run(
            self.learn_program,
            feed={
                "obs": np.array(obs, "float32"),
                "act": np.array(act, "int64").reshape(-1, 1),
                "reward": np.array(reward, "float32"),
            },
            fetch_list=list(self.costs),
        )


def calc_reward_to_go(reward_list, gamma=0.9):
    for i in range(len(reward_list) - 2, -1, -1):
        reward_list[i] += gamma * reward_list[i + 1]
    return np.array(reward_list)


def main():
    agent = Agent(A2C(Model(2), lr=5e-3, vf_coeff=0.5, entropy_coeff=0.01), obs_dim=5)
    rng = np.random.RandomState(1)
    for program in (agent.pred_program, agent.learn_program):
        for param in program.all_parameters():
            if param.name.endswith(".w"):
                fluid.global_scope().find_var(param.name).get_tensor().set(
                    rng.randn(*param.shape).astype("float32") * 0.3, fluid.CPUPlace()
                )
    for episode in range(8):
        place, obs_list, action_list, reward_list = 2, [], [], []
        for _ in range(10):
            obs = np.eye(5)[place]
            action, prob = agent.sample(obs, rng)
            place += 1 if action else -1
            obs_list.append(obs)
            action_list.append(action)
            reward_list.append(1.0 if place == 4 else -0.1)
            if place in (0, 4):
                break
        costs = agent.learn(obs_list, action_list, calc_reward_to_go(reward_list))
        print(
            "Episode {}, steps {}, total {:.5f} pi {:.5f} vf {:.5f} entropy {:.5f}".format(
                episode, len(obs_list), *[c[0] for c in costs]
            )
        )


if __name__ == "__main__":
    main()

"""Deep Q-learning with a target network that is copied by assign ops."""

import numpy as np
import paddle.fluid as fluid
from paddle.fluid.param_attr import ParamAttr

STATE_DIM, ACTION_DIM, GAMMA = 4, 3, 0.9


class DQNModel:
    def __init__(self, state_dim, action_dim, gamma, hist_len=1):
        self.state_dim = state_dim
        self.action_dim = action_dim
        self.gamma = gamma
        self.exploration = 1.1
        self.target_update = 4
        self.global_step = 0
        self._build_net()

    def _get_inputs(self):
        return (
            fluid.data(name="state", shape=[None, self.state_dim], dtype="float32"),
            fluid.data(name="action", shape=[None, 1], dtype="int32"),
            fluid.data(name="reward", shape=[None], dtype="float32"),
            fluid.data(name="next_s", shape=[None, self.state_dim], dtype="float32"),
            fluid.data(name="isOver", shape=[None], dtype="bool"),
        )

    def _build_net(self):
        self.predict_program = fluid.Program()
        self.train_program = fluid.Program()
        self._sync_program = fluid.Program()
        with fluid.program_guard(self.predict_program):
            state, action, reward, next_s, isOver = self._get_inputs()
            self.pred_value = self.get_DQN_prediction(state)
            self.predict_program = self.predict_program.clone(for_test=True)
        with fluid.program_guard(self.train_program):
            state, action, reward, next_s, isOver = self._get_inputs()
            pred_value = self.get_DQN_prediction(state)
            reward = fluid.layers.clip(reward, min=-1.0, max=1.0)
            action_onehot = fluid.layers.one_hot(action, self.action_dim)
            action_onehot = fluid.layers.cast(action_onehot, dtype="float32")
            pred_action_value = fluid.layers.reduce_sum(
                action_onehot * pred_value, dim=1
            )
            targetQ_predict_value = self.get_DQN_prediction(next_s, target=True)
            best_v = fluid.layers.reduce_max(targetQ_predict_value, dim=1)
            best_v.stop_gradient = True
            target = (
                reward
                + (1.0 - fluid.layers.cast(isOver, dtype="float32"))
                * self.gamma
                * best_v
            )
            cost = fluid.layers.square_error_cost(pred_action_value, target)
            self.cost = fluid.layers.reduce_mean(cost)
            optimizer = fluid.optimizer.Adam(1e-2, epsilon=1e-3)
            optimizer.minimize(self.cost)
        vars = list(self.train_program.list_vars())
        policy_vars = [
            x
            for x in vars
            if "policy" in x.name
            and "GRAD" not in x.name
            and isinstance(x, fluid.framework.Parameter)
        ]
        target_vars = [
            x
            for x in vars
            if "target" in x.name
            and "GRAD" not in x.name
            and isinstance(x, fluid.framework.Parameter)
        ]
        policy_vars.sort(key=lambda x: x.name)
        target_vars.sort(key=lambda x: x.name)
        with fluid.program_guard(self._sync_program):
            for target, source in zip(target_vars, policy_vars):
                for var in (source, target):
                    if not self._sync_program.global_block().has_var(var.name):
                        self._sync_program.global_block()._clone_variable(var)
                fluid.layers.assign(
                    self._sync_program.global_block().var(source.name),
                    self._sync_program.global_block().var(target.name),
                )
        self.exe = fluid.Executor(fluid.CPUPlace())
        self.exe.run(fluid.default_startup_program())
        rng = np.random.RandomState(0)
        for var in policy_vars + target_vars:
            fluid.global_scope().find_var(var.name).get_tensor().set(
                rng.uniform(-0.5, 0.5, var.shape).astype("float32"), self.exe.place
            )

    def get_DQN_prediction(self, state, target=False):
        variable_field = "target" if target else "policy"
        x = state
        for i, (size, act) in enumerate([(16, "relu"), (16, "tanh")]):
            x = fluid.layers.fc(
                input=x,
                size=size,
                act=act,
                param_attr=ParamAttr(name=f"{variable_field}_fc{i}"),
                bias_attr=ParamAttr(name=f"{variable_field}_fc{i}_b"),
            )
        # dueling: a value, and the advantage of each action
        value = fluid.layers.fc(
            x,
            1,
            param_attr=ParamAttr(name=f"{variable_field}_v"),
            bias_attr=ParamAttr(name=f"{variable_field}_v_b"),
        )
        advantage = fluid.layers.fc(
            x,
            self.action_dim,
            param_attr=ParamAttr(name=f"{variable_field}_a"),
            bias_attr=ParamAttr(name=f"{variable_field}_a_b"),
        )
        return value + (
            advantage - fluid.layers.reduce_mean(advantage, dim=1, keep_dim=True)
        )

    def act(self, state, rng):
        sample = rng.random_sample()
        if sample < self.exploration:
            act = rng.randint(self.action_dim)
        else:
            state = np.expand_dims(state, axis=0).astype("float32")
            pred_Q = self.exe.run(
                self.predict_program,
                feed={"state": state},
                fetch_list=[self.pred_value],
            )[0]
            act = np.argmax(np.squeeze(pred_Q, axis=0))
        self.exploration = max(0.1, self.exploration - 0.1)
        return int(act)

    def train(self, state, action, reward, next_state, isOver):
        if self.global_step % self.target_update == 0:
            self.exe.run(self._sync_program)
        self.global_step += 1
        return self.exe.run(
            self.train_program,
            feed={
                "state": state.astype("float32"),
                "action": np.expand_dims(action, -1).astype("int32"),
                "reward": reward,
                "next_s": next_state.astype("float32"),
                "isOver": isOver,
            },
            fetch_list=[self.cost],
        )[0]


def main():
    rng = np.random.RandomState(3)
    agent = DQNModel(STATE_DIM, ACTION_DIM, GAMMA)
    memory, state = [], rng.randn(STATE_DIM)
    for step in range(40):
        action = agent.act(state, rng)
        next_state = 0.8 * state + 0.3 * rng.randn(STATE_DIM)
        reward = float(action == np.argmax(state[:ACTION_DIM]))
        memory.append((state, action, reward, next_state, rng.rand() < 0.1))
        state = next_state
        if step >= 15 and step % 2:
            batch = [memory[i] for i in rng.randint(0, len(memory), 8)]
            columns = [np.array(c) for c in zip(*batch)]
            columns[2] = columns[2].astype("float32")
            print(
                "step %d action %d loss %.6f" % (step, action, agent.train(*columns)[0])
            )


if __name__ == "__main__":
    main()

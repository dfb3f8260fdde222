"""Users and movies by several embeddings, in the style of the 1.x tutorial."""

from __future__ import print_function

import numpy as np
import paddle
import paddle.fluid as fluid
import paddle.fluid.layers as layers

USERS, AGES, JOBS, MOVIES, CATEGORIES, TITLES = 30, 7, 21, 40, 18, 60


def get_usr_combined_features():
    uid = layers.data(name="user_id", shape=[1], dtype="int64")
    usr_emb = layers.embedding(
        input=uid, dtype="float32", size=[USERS, 16], param_attr="user_table"
    )
    usr_fc = layers.fc(input=usr_emb, size=16)
    usr_gender_id = layers.data(name="gender_id", shape=[1], dtype="int64")
    usr_gender_emb = layers.embedding(
        input=usr_gender_id, size=[2, 8], param_attr="gender_table"
    )
    usr_gender_fc = layers.fc(input=usr_gender_emb, size=8)
    usr_age_id = layers.data(name="age_id", shape=[1], dtype="int64")
    usr_age_emb = layers.embedding(
        input=usr_age_id, size=[AGES, 8], is_sparse=True, param_attr="age_table"
    )
    usr_age_fc = layers.fc(input=usr_age_emb, size=8)
    usr_job_id = layers.data(name="job_id", shape=[1], dtype="int64")
    usr_job_emb = layers.embedding(
        input=usr_job_id, size=[JOBS, 8], is_sparse=True, param_attr="job_table"
    )
    usr_job_fc = layers.fc(input=usr_job_emb, size=8)
    concat_embed = layers.concat(
        input=[usr_fc, usr_gender_fc, usr_age_fc, usr_job_fc], axis=1
    )
    return layers.fc(input=concat_embed, size=24, act="tanh")


def get_mov_combined_features():
    mov_id = layers.data(name="movie_id", shape=[1], dtype="int64")
    mov_emb = layers.embedding(
        input=mov_id, size=[MOVIES, 16], is_sparse=True, param_attr="movie_table"
    )
    mov_fc = layers.fc(input=mov_emb, size=16)
    category_id = layers.data(name="category_id", shape=[1], dtype="int64", lod_level=1)
    mov_categories_emb = layers.embedding(
        input=category_id, size=[CATEGORIES, 16], is_sparse=True
    )
    mov_categories_hidden = layers.sequence_pool(
        input=mov_categories_emb, pool_type="sum"
    )
    mov_title_id = layers.data(
        name="movie_title", shape=[1], dtype="int64", lod_level=1
    )
    mov_title_emb = layers.embedding(
        input=mov_title_id, size=[TITLES, 16], is_sparse=True
    )
    mov_title_hidden = layers.sequence_pool(
        input=layers.fc(input=mov_title_emb, size=16, act="tanh"), pool_type="max"
    )
    concat_embed = layers.concat(
        input=[mov_fc, mov_categories_hidden, mov_title_hidden], axis=1
    )
    return layers.fc(input=concat_embed, size=24, act="tanh")


def inference_program():
    usr_combined_features = get_usr_combined_features()
    mov_combined_features = get_mov_combined_features()
    inference = layers.cos_sim(X=usr_combined_features, Y=mov_combined_features)
    return layers.scale(x=inference, scale=5.0)


def ratings(count):
    random = np.random.RandomState(8)

    def reader():
        for _ in range(count):
            user, movie = random.randint(0, USERS), random.randint(0, MOVIES)
            categories = random.randint(0, CATEGORIES, random.randint(1, 4)).tolist()
            title = random.randint(0, TITLES, random.randint(2, 6)).tolist()
            score = [float((user * 7 + movie * 3) % 5 + 1)]
            person = [user, user % 2, user % AGES, user % JOBS]
            yield [[p] for p in person] + [[movie], categories, title, score]

    return reader


def set_parameters(program, place):
    random = np.random.RandomState(1)
    for param in sorted(program.all_parameters(), key=lambda p: p.name):
        value = (0.3 * random.randn(*param.shape)).astype("float32")
        fluid.global_scope().var(param.name).get_tensor().set(value, place)


def main():
    place = fluid.CPUPlace()
    scale_infer = inference_program()
    label = layers.data(name="score", shape=[1], dtype="float32")
    square_cost = layers.square_error_cost(input=scale_infer, label=label)
    avg_cost = layers.mean(square_cost)
    fluid.optimizer.SGD(learning_rate=0.05).minimize(avg_cost)

    feed_order = ["user_id", "gender_id", "age_id", "job_id"]
    feed_order += ["movie_id", "category_id", "movie_title", "score"]
    main_program = fluid.default_main_program()
    feed_list = [main_program.global_block().var(name) for name in feed_order]
    feeder = fluid.DataFeeder(feed_list, place)
    exe = fluid.Executor(place)
    exe.run(fluid.default_startup_program())
    set_parameters(main_program, place)
    for step, data in enumerate(paddle.batch(ratings(16 * 12), 16)()):
        outs = exe.run(
            program=main_program, feed=feeder.feed(data), fetch_list=[avg_cost.name]
        )
        print("step %d loss %.7f" % (step, np.array(outs[0])[0]))


if __name__ == "__main__":
    main()

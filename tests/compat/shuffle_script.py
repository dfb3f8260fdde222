"""Workers of a fleet with servers shuffle their samples among all of them."""

import sys

import paddle.fluid as fluid
import paddle.fluid.incubate.fleet.base.role_maker as role_maker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet


def main(folder):
    fleet.init(role_maker.PaddleCloudRoleMaker())
    if fleet.is_server():
        return
    number = fleet.worker_index()
    path = f"{folder}/in-{number}"
    with open(path, "w") as file:
        for line in range(50 + 10 * number):
            file.write(f"1 {1000 * number + line} 2 {line} {line + 1}\n")
    first = fluid.data("first", [None, 1], dtype="int64")
    second = fluid.data("second", [None, 1], dtype="int64", lod_level=1)
    dataset = fluid.DatasetFactory().create_dataset("InMemoryDataset")
    dataset.set_use_var([first, second])
    dataset.set_batch_size(8)
    dataset.set_filelist([path])
    dataset.load_into_memory()
    total = dataset.get_memory_data_size(fleet)
    dataset.global_shuffle(fleet)
    mine = dataset.get_shuffle_data_size()
    print("sizes", total, mine, dataset.get_shuffle_data_size(fleet))
    sum_of = fluid.layers.reduce_sum(first)
    exe = fluid.Executor(fluid.CPUPlace())
    places = [fluid.CPUPlace()]
    loader = fluid.io.DataLoader.from_dataset(dataset, places, drop_last=False)
    for feed in loader():
        values = exe.run(feed=feed, fetch_list=[first, sum_of])
        for value in values[0].reshape(-1):
            print("sample", int(value))
    fleet.barrier_worker()


if __name__ == "__main__":
    main(sys.argv[1])

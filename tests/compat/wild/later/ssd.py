"""A toy detector with prior boxes and matching (needs multi_box_head, ssd_loss)."""
import numpy as np
import paddle.fluid as fluid


def main():
    image = fluid.data('image', [None, 3, 32, 32], 'float32')
    box = fluid.data('gt_box', [None, 4], 'float32', lod_level=1)
    kind = fluid.data('gt_label', [None, 1], 'int32', lod_level=1)
    a = fluid.layers.conv2d(image, 8, 3, stride=4, padding=1, act='relu', param_attr='a')
    b = fluid.layers.conv2d(a, 8, 3, stride=2, padding=1, act='relu', param_attr='b')
    locs, confs, boxes, variances = fluid.layers.multi_box_head(
        inputs=[a, b], image=image, base_size=32, num_classes=3, min_ratio=20,
        max_ratio=90, min_sizes=[8.0, 16.0], max_sizes=[16.0, 30.0],
        aspect_ratios=[[2.], [2.]], flip=True)
    loss = fluid.layers.reduce_sum(
        fluid.layers.ssd_loss(locs, confs, box, kind, boxes, variances))
    fluid.optimizer.RMSProp(1e-3).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    rng = np.random.RandomState(2)
    for p in fluid.default_main_program().all_parameters():
        fluid.global_scope().find_var(p.name).get_tensor().set(
            rng.uniform(-.1, .1, p.shape).astype('float32'), exe.place)
    for step in range(3):
        corner = rng.rand(3, 2) * 0.5
        truth = np.concatenate([corner, corner + 0.3], 1).astype('float32')
        feed = {'image': rng.rand(2, 3, 32, 32).astype('float32'),
                'gt_box': fluid.create_lod_tensor(truth, [[1, 2]], exe.place),
                'gt_label': fluid.create_lod_tensor(
                    np.array([[1], [2], [1]], 'int32'), [[1, 2]], exe.place)}
        print('step %d loss %.5f' % (step, exe.run(feed=feed, fetch_list=[loss])[0]))


if __name__ == '__main__':
    main()

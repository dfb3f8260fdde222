"""A teacher is loaded from disk, merged into the student's program, and distilled."""

import os
import shutil
import tempfile

import numpy as np
import paddle.fluid as fluid

place = fluid.CPUPlace()
exe = fluid.Executor(place)


def net(image, widths, classes=4):
    for i, w in enumerate(widths):
        image = fluid.layers.fc(image, w, act='relu', name='hid_%d' % i)
    return image, fluid.layers.fc(image, classes, name='logits')


def data(count, seed):
    rng = np.random.RandomState(seed)
    for _ in range(count):
        x = rng.randn(8, 6).astype('float32')
        yield x, np.argmax(x[:, :4] + 0.1 * x[:, 2:3], 1).reshape(-1, 1).astype('int64')


def fill(program, seed):
    rng = np.random.RandomState(seed)
    for p in sorted(program.all_parameters(), key=lambda p: p.name):
        p_t = fluid.global_scope().find_var(p.name).get_tensor()
        p_t.set((rng.randn(*p.shape) * 0.4).astype('float32'), place)


def merge(teacher_program, student_program, data_name_map, scope, name_prefix='teacher_'):
    """The teacher's variables get a prefix, its ops and vars go to the student's."""
    teacher_program = teacher_program.clone(for_test=True)
    for teacher_var in list(teacher_program.list_vars()):
        if teacher_var.name in ('fetch', 'feed'):
            continue
        if teacher_var.name in data_name_map:
            new_name = data_name_map[teacher_var.name]
        else:
            new_name = name_prefix + teacher_var.name
            if teacher_var.persistable:
                old = scope.var(teacher_var.name).get_tensor()
                new = scope.var(new_name).get_tensor()
                new.set(np.array(old), place)
        if new_name != teacher_var.name:
            teacher_program.global_block()._rename_var(teacher_var.name, new_name)
    with fluid.program_guard(student_program):
        for teacher_var in teacher_program.list_vars():
            if teacher_var.name in ('fetch', 'feed'):
                continue
            new_var = student_program.global_block()._clone_variable(
                teacher_var, force_persistable=False)
            new_var.stop_gradient = True
        for op in teacher_program.global_block().ops:
            if op.type in ('feed', 'fetch'):
                continue
            inputs, outputs, attrs = {}, {}, {}
            for name in op.input_names:
                inputs[name] = [student_program.global_block().var(n)
                                for n in op.input(name)]
            for name in op.output_names:
                outputs[name] = [student_program.global_block().var(n)
                                 for n in op.output(name)]
            for name in op.attr_names:
                attrs[name] = op.attr(name)
            student_program.global_block().append_op(
                type=op.type, inputs=inputs, outputs=outputs, attrs=attrs)


def train_teacher(folder):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data('image', [None, 6], 'float32')
        y = fluid.data('label', [None, 1], 'int64')
        feature, logits = net(x, [16, 12])
        loss = fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(logits, y))
        fluid.optimizer.Adam(0.02).minimize(loss)
    exe.run(startup)
    fill(main, 1)
    for step, (a, b) in enumerate(data(12, seed=0)):
        value, = exe.run(main, feed={'image': a, 'label': b}, fetch_list=[loss])
        if step % 4 == 3:
            print('teacher step %d loss %.6f' % (step, value))
    fluid.io.save_inference_model(
        folder, ['image'], [feature, logits], exe, main_program=main,
        model_filename='model', params_filename='params')
    return feature.name, logits.name


def main():
    folder = tempfile.mkdtemp()
    with fluid.scope_guard(fluid.Scope()):
        feature_name, logits_name = train_teacher(folder)
    print(sorted(os.listdir(folder)))
    teacher, feeds, fetches = fluid.io.load_inference_model(
        folder, exe, model_filename='model', params_filename='params')
    print(feeds, [v.shape for v in fetches])

    student, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(student, startup):
        x = fluid.data('pixel', [None, 6], 'float32')
        y = fluid.data('label', [None, 1], 'int64')
        feature, logits = net(x, [12])
        hard = fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(logits, y))
        test = student.clone(for_test=True)
    merge(teacher, student, {'image': 'pixel'}, fluid.global_scope())
    with fluid.program_guard(student, startup):
        block = student.global_block()
        names = [v.name for v in fetches]
        t_feature, t_logits = [block.var('teacher_' + n) for n in names]
        soft = fluid.layers.mean(fluid.layers.cross_entropy(
            fluid.layers.softmax(logits / 2.0), fluid.layers.softmax(t_logits / 2.0),
            soft_label=True))
        l2 = fluid.layers.reduce_mean(fluid.layers.square(feature - t_feature))
        total = hard + 4.0 * soft + 0.1 * l2
        fluid.optimizer.Momentum(0.05, 0.9, use_nesterov=True).minimize(total)
    exe.run(startup)
    fill(test, 2)
    for step, (a, b) in enumerate(data(8, seed=5)):
        values = exe.run(student, feed={'pixel': a, 'label': b},
                         fetch_list=[total, hard, soft, l2])
        print('step %d total %.6f hard %.6f soft %.6f l2 %.6f' % (
            (step, ) + tuple(v.item() for v in values)))
    a, b = next(data(1, seed=9))
    print('test %.6f' % exe.run(test, feed={'pixel': a, 'label': b},
                                fetch_list=[hard])[0])
    frozen = np.array(fluid.global_scope().find_var('teacher_hid_0.w_0').get_tensor())
    print('teacher unchanged, sum %.6f' % np.abs(frozen).sum())
    shutil.rmtree(folder)


if __name__ == '__main__':
    main()

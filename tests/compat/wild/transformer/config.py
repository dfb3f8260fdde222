class ModelHyperParams:
    src_vocab_size = 40
    trg_vocab_size = 40
    bos_idx, eos_idx, unk_idx = 0, 1, 2
    max_length = 16
    d_model = 16
    d_inner_hid = 32
    d_key = 8
    d_value = 8
    n_head = 2
    n_layer = 2
    prepostprocess_dropout = 0.0
    attention_dropout = 0.0
    relu_dropout = 0.0
    # the commands to deal with the sub-layers' in- and outputs
    preprocess_cmd = "n"
    postprocess_cmd = "da"
    weight_sharing = True


class TrainTaskConfig:
    pass_num = 2
    learning_rate = 2.0
    beta1, beta2, eps = 0.9, 0.997, 1e-9
    warmup_steps = 8
    label_smooth_eps = 0.1
    batch_size = 4


def merge_cfg_from_list(cfg_list, g_cfgs):
    """Set the above with a list of names and values."""
    assert len(cfg_list) % 2 == 0
    for key, value in zip(cfg_list[0::2], cfg_list[1::2]):
        for g_cfg in g_cfgs:
            if hasattr(g_cfg, key):
                try:
                    value = eval(value)
                except Exception:
                    pass
                setattr(g_cfg, key, value)
                break

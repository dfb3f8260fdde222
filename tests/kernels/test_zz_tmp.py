from replay_oracle import oracle_suite
test_vc = oracle_suite("volume_conv")
test_vp = oracle_suite("volume_pool")
test_im = oracle_suite("image_ops")
test_pr = oracle_suite("pair_ops")

"""The sequence ops, and LoD through other ops, answer as the reference did."""

from __future__ import annotations

from replay_oracle import oracle_suite

test_convolutions = oracle_suite("sequence_conv")
test_moves = oracle_suite("sequence_moves")
test_paddings_and_ids = oracle_suite("sequence_pads")
test_lods = oracle_suite("sequence_lods")

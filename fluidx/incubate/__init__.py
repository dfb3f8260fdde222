"""``fluid.incubate``: the Fleet API and data generators."""

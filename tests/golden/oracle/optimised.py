"""Models that the reference's inference passes have rewritten: optimised/ here.

    python optimised.py

Each of ``optimised/<name>`` has ``model`` and ``params``, made of
``../models/<name>/infer_separate`` by ``AnalysisPredictor.SaveOptimModel``.
"""

import os

from paddle.fluid.core import AnalysisConfig, create_paddle_predictor

HERE = os.path.dirname(os.path.abspath(__file__))

if __name__ == "__main__":
    for name in ("mlp", "lenet"):
        folder = os.path.join(HERE, "..", "models", name, "infer_separate")
        config = AnalysisConfig(folder)
        config.disable_gpu()
        config.disable_glog_info()
        made = os.path.join(HERE, "optimised", name)
        os.makedirs(made, exist_ok=True)
        create_paddle_predictor(config).SaveOptimModel(made)

"""Run under the reference: the signatures of its functions for files.

python io_api.py > ../io_api.json
"""

import inspect
import json

import paddle.fluid as fluid

NAMES = """
append_fetch_ops get_parameter_value get_parameter_value_by_name get_program_parameter
get_program_persistable_vars is_belong_to_optimizer is_parameter is_persistable load
load_inference_model load_params load_persistables load_program_state load_vars
prepend_feed_ops save save_inference_model save_params save_persistables save_vars
set_program_state
"""

found = {n: str(inspect.signature(getattr(fluid.io, n))) for n in NAMES.split()}
print(json.dumps(found, indent=1, sort_keys=True))

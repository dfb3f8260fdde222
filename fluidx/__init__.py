"""fluidx: PaddlePaddle Fluid 1.8's static-graph programs on today's Python."""

from fluidx.ir import (
    Program,
    Variable,
    default_main_program,
    default_startup_program,
    device_guard,
    name_scope,
    program_guard,
    unique_name,
)

"""A folder for PYTHONPATH: its ``paddle`` is fluidx (see `fluidx.compat.PATH`)."""

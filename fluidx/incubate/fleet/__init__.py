"""The Fleet API (``fluid.incubate.fleet``)."""

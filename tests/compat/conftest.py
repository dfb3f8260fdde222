from __future__ import annotations

import pytest

from fluidx import compat


@pytest.fixture
def paddle():
    """``paddle``, as fluidx, for the time of a test."""
    compat.install_as_paddle(old_names=False)
    import paddle

    yield paddle
    compat.uninstall()

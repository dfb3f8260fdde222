"""Mistakes on the command line: a sentence and exit code 2, no traceback."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fluidx.cli import main
from fluidx.cli.run import _is_module, _run_file
from fluidx.cli.scripts import ScriptError, capture


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "script.py").write_text("print(1)\n")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["launch", "nope.py"], "fluidx launch: there is no file 'nope.py'"),
        (["launch", "folder"], "'folder' is a folder and has no __main__.py"),
    ],
)
def test_what_cannot_be_launched(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert said in capsys.readouterr().err
    assert not Path("log").exists()  # no process was started


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["launch", "--workers", "a", "script.py"], "'a' is no whole number"),
        (["transpile", "script.py", "--servers", "a"], "'a' is no whole number"),
    ],
)
def test_counts_that_are_none(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.startswith(f"usage: fluidx {arguments[0]}")


def test_a_folder_without_main(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run_file(Path("folder")) == 2
    said = "fluidx run: 'folder' is a folder and has no __main__.py"
    assert said in capsys.readouterr().err


def test_what_a_script_imports() -> None:
    """Modules beside it are forgotten; others are imported once in a process."""
    Path("beside.py").write_text("here = 1\n")
    Path("script.py").write_text("import beside, colorsys\n")
    sys.modules.pop("colorsys", None)
    with pytest.raises(ScriptError, match="updates no parameter"):
        capture("script.py", [], 1)
    assert "beside" not in sys.modules
    assert "colorsys" in sys.modules


def test_modules_that_are_not_there() -> None:
    assert _is_module("json.tool")
    assert not _is_module("nope")
    assert not _is_module("nope.inner")
    Path("package").mkdir()
    Path("package/__init__.py").write_text("import missing_elsewhere\n")
    sys.path.insert(0, ".")
    try:
        with pytest.raises(ModuleNotFoundError, match="missing_elsewhere"):
            _is_module("package.inner")
    finally:
        sys.path.remove(".")

"""A ``hadoop`` whose file system is the folder $FAKE_HDFS; says what it ran in $LOG."""

from __future__ import annotations

import stat
import sys

SCRIPT = f"""#!{sys.executable}
import os, shutil, sys, time
from pathlib import Path

root = Path(os.environ["FAKE_HDFS"])
words = [w for w in sys.argv[2:] if not w.startswith("-D")]
with open(os.environ["LOG"], "a") as log:
    log.write(" ".join(sys.argv[1:]) + "\\n")
command, paths = words[0], words[1:]
at = [root / p.lstrip("/") for p in paths]


def line(path):
    kind = "d" if path.is_dir() else "-"
    when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(path.stat().st_mtime))
    name = "/" + str(path.relative_to(root))
    print(f"{{kind}}rw-r--r--   3 user group {{path.stat().st_size}} {{when}} {{name}}")


if command == "-test":
    there = root / paths[1].lstrip("/")
    sys.exit(not {{"-e": there.exists, "-d": there.is_dir}}[paths[0]]())
elif command == "-ls":
    print("Found some items")
    [line(p) for p in sorted(at[0].iterdir())]
elif command == "-lsr":
    [line(p) for p in sorted(at[0].rglob("*"))]
elif command == "-cat":
    print(at[0].read_text(), end="")
elif command == "-mkdir":
    at[0].mkdir(parents=True)
elif command == "-mv":
    shutil.move(at[0], at[1])
elif command == "-rm":
    at[0].unlink()
elif command == "-rmr":
    shutil.rmtree(at[0])
elif command == "-put":
    copy = shutil.copytree if Path(paths[0]).is_dir() else shutil.copy
    copy(paths[0], at[1])
elif command == "-get":
    copy = shutil.copytree if at[0].is_dir() else shutil.copy
    copy(at[0], paths[1])
else:
    sys.exit(f"unknown command {{command}}")
"""


def install(home, files, monkeypatch):
    """Put the tool below `home`, with `files` as its file system."""
    tool = home / "bin" / "hadoop"
    tool.parent.mkdir(parents=True)
    tool.write_text(SCRIPT)
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    files.mkdir()
    monkeypatch.setenv("FAKE_HDFS", str(files))
    monkeypatch.setenv("LOG", str(home / "log"))
    return home / "log"

"""What a crash or a full disk leaves behind: the old file or the new one, whole."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import pld_shuffle
from pld_shuffle import Accountant, ShuffledLDP

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")

SAVE_FOREVER = """
import sys
from pld_shuffle import Accountant, ShuffledLDP
acc = Accountant()
while True:
    acc = acc.compose(ShuffledLDP(1.0, 100 + acc.rounds % 99))
    acc.save(sys.argv[1])
"""

FULL_DISK = """
import resource, signal, sys
from pld_shuffle import Accountant, ShuffledLDP
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
acc = Accountant()
for n in range(2, 400):
    acc.compose(ShuffledLDP(1.0, n))
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    acc.save(sys.argv[1])
except OSError as error:
    print(error.errno)
"""


def started(script: str, path: Path) -> subprocess.Popen[bytes]:
    environment = dict(os.environ, PYTHONPATH=str(Path(pld_shuffle.__file__).parents[1]))
    command = [sys.executable, "-c", script, str(path)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)


def test_killed_while_saving(tmp_path: Path) -> None:
    """kill -9 at random moments of a loop that does nothing but save."""
    path = tmp_path / "ledger.json"
    rng = random.Random(20)
    for _ in range(3):
        path.unlink(missing_ok=True)
        process = started(SAVE_FOREVER, path)
        while process.poll() is None and not path.exists():
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 0.1))
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        process.communicate()
        assert Accountant.load(path).rounds > 0


def test_no_room_for_a_file(tmp_path: Path) -> None:
    """A limit on the size of files stands for a full disk: the write fails half way. What was there stays."""
    path = tmp_path / "ledger.json"
    acc = Accountant().compose(ShuffledLDP(1.0, 10))
    acc.save(path)
    process = started(FULL_DISK, path)
    output, _ = process.communicate()
    assert process.returncode == 0 and len(output.split()) == 1  # refused, by an OSError
    assert Accountant.load(path).ledger == acc.ledger
    assert list(tmp_path.iterdir()) == [path]  # no half of a file

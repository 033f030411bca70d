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
from pld_shuffle.composition.pld import PLD

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")

SAVE_FOREVER = """
import sys
from pld_shuffle import Accountant, ShuffledLDP
law = ShuffledLDP(2.0, 1000, "stronger-clones").pld(step=1e-4)
acc = Accountant()
while True:
    acc = acc.compose(ShuffledLDP(1.0, 100 + acc.rounds % 7))
    acc.save(sys.argv[1])
    law.save(sys.argv[2])
"""

FULL_DISK = """
import resource, signal, sys
from pld_shuffle import Accountant, ShuffledLDP
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
law = ShuffledLDP(2.0, 1000, "stronger-clones").pld(step=1e-4)
acc = Accountant()
for n in range(2, 400):
    acc.compose(ShuffledLDP(1.0, n))
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
for held, path in ((acc, sys.argv[1]), (law, sys.argv[2])):
    try:
        held.save(path)
    except OSError as error:
        print(error.errno)
"""


def started(script: str, *arguments: Path) -> subprocess.Popen[bytes]:
    environment = dict(os.environ, PYTHONPATH=str(Path(pld_shuffle.__file__).parents[1]))
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)


def test_killed_while_saving(tmp_path: Path) -> None:
    """kill -9 at random moments of a loop that does nothing but save."""
    ledger, law = tmp_path / "ledger.json", tmp_path / "law.npz"
    expected = ShuffledLDP(2.0, 1000, "stronger-clones").pld(step=1e-4)
    rounds = 0
    rng = random.Random(20)
    for _ in range(2):
        process = started(SAVE_FOREVER, ledger, law)
        before = law.stat().st_mtime_ns if law.exists() else 0
        while process.poll() is None and (not law.exists() or law.stat().st_mtime_ns == before):
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 0.1))
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        process.communicate()
        rounds = Accountant.load(ledger).rounds
        assert rounds > 0
        assert PLD.load(law) == expected


def test_no_room_for_a_file(tmp_path: Path) -> None:
    """A limit on the size of files stands for a full disk: the write fails half way. What was there stays."""
    ledger, law = tmp_path / "ledger.json", tmp_path / "law.npz"
    acc = Accountant().compose(ShuffledLDP(1.0, 10))
    acc.save(ledger)
    small = ShuffledLDP(1.0, 3, "stronger-clones").pld(step=0.1)
    small.save(law)
    process = started(FULL_DISK, ledger, law)
    output, _ = process.communicate()
    assert process.returncode == 0 and len(output.split()) == 2  # both refused, by an OSError
    assert Accountant.load(ledger).ledger == acc.ledger
    assert PLD.load(law) == small
    assert sorted(tmp_path.iterdir()) == [law, ledger]  # no half of a file

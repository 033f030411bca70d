"""The same questions to this version and to an older one: processor time, one after the other.

Both run in processes of their own and answer each question in turn, several times; the least time counts. Compiled
code is loaded, every accountant is new, and what one mechanism remembers is forgotten with it. Rows named "same pair"
ask both for the pair of stronger clones, of the blanket or of a stated adversary; elsewhere each version takes its
default analysis, whose answer is often smaller now.

    python benchmarks/against_release.py FOLDER [--quick]     # FOLDER: a checkout of the older version
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import harness

#: What both versions run first.
COMMON = """
import warnings
import numpy as np
from pld_shuffle import *
from pld_shuffle import randomizers as R
from pld_shuffle.trajectory import epsilon_trajectory
warnings.simplefilter("ignore")
SAME = dict(analysis="stronger-clones")
def spent(*ledger):
    accountant = Accountant()
    for mechanism, rounds in ledger:
        accountant.compose(mechanism, rounds)
    return accountant
def blanket(randomizer):
    try:
        return Shuffled(randomizer, 10_000, analysis="blanket")
    except TypeError:  # older versions know no other analysis
        return Shuffled(randomizer, 10_000)
def local_gaussian(sigma):
    try:
        return R.Gaussian(sigma=sigma)
    except TypeError:  # older versions asked for an eps0 that changed nothing
        return R.Gaussian(sigma=sigma, eps0=1.0)
def distinct(count):
    return [(ShuffledLDP(2.0, 4_500 + 7 * i, **SAME), 1) for i in range(count)]
def forget():
    try:
        from pld_shuffle.composition.renyi import _Laws
        _Laws.of.cache_clear()
    except ImportError:
        pass
def loop(ledger):
    accountant = Accountant()
    for mechanism, rounds in ledger:
        assert not accountant.would_exceed(mechanism, epsilon=10.0, delta=1e-6)
        accountant.compose(mechanism, rounds)
    return accountant.get_epsilon(1e-6)
"""

#: The epsilon of equal rounds.
EQUAL = "spent((ShuffledLDP({eps0}, {n}, **SAME), {rounds})).get_epsilon(1e-6)"


def questions() -> Iterator[tuple[str, str]]:
    """Names and expressions."""
    for eps0, n in ((1.0, 1_000), (4.0, 10_000), (4.0, 10**6), (2.0, 10**9)):
        for rounds in (1, 10, 100, 1_000):
            name = f"same pair: eps0 = {eps0:g}, n = {n:.0e}, {rounds:,} rounds"
            yield name, EQUAL.format(eps0=eps0, n=n, rounds=rounds)
    for rounds in (10**5, 10**6):
        name = f"same pair: eps0 = 4, n = 1e+06, {rounds:,} rounds"
        yield name, EQUAL.format(eps0=4.0, n=10**6, rounds=rounds)
    for adversary in ("strong", "weak"):
        name = f"same pair: 16-RR, {adversary}, n = 1e+04, 100 rounds"
        yield (name, f"spent((ShuffledRR(16, 10_000, eps0=4.0, adversary={adversary!r}), 100)).get_epsilon(1e-6)")
    yield (
        "same pair: delta = 1e-100, 100 rounds",
        "spent((ShuffledLDP(4.0, 10_000, **SAME), 100)).get_epsilon(1e-100)",
    )
    for count in (8, 24, 25, 100, 1_000):
        yield (f"same pair: {count:,} distinct cohorts", f"spent(*distinct({count})).get_epsilon(1e-6)")
    yield ("same pair: trajectory of 100 distinct cohorts", "epsilon_trajectory(distinct(100), 1e-6).upper[-1]")
    yield "same pair: would_exceed before each of 20 rounds", "loop(distinct(20))"
    yield (
        "same pair: 100 epsilons of 100 rounds",
        "spent((ShuffledLDP(4.0, 10_000, **SAME), 100)).get_epsilon(np.logspace(-12, -3, 100))[-1]",
    )
    yield (
        "same pair: three mechanisms with Gaussian noise",
        "spent((ShuffledLDP(4.0, 10_000, **SAME), 10), (ShuffledRR(16, 10_000, eps0=4.0, adversary='weak'), 10),"
        " (Gaussian(sigma=20.0), 10)).get_epsilon(1e-6)",
    )
    yield "Gaussian, 1,000 rounds", "spent((Gaussian(sigma=100.0), 1_000)).get_epsilon(1e-6)"
    yield ("PoissonGaussian, 1,000 rounds", "spent((PoissonGaussian(sigma=1.0, rate=0.01), 1_000)).get_epsilon(1e-6)")
    yield (
        "Renyi divergences, n = 1e6",
        "forget() or RenyiAccountant().compose(ShuffledLDP(4.0, 10**6, **SAME), 100).get_epsilon(1e-6)",
    )
    named = (
        ("k-RR", "R.KRandomizedResponse(k=16, eps0=2.0)"),
        ("unary encoding", "R.UnaryEncoding(k=16, eps0=2.0)"),
        ("subset selection", "R.SubsetSelection(k=16, size=4, eps0=2.0)"),
        ("Laplace", "R.Laplace(eps0=2.0)"),
        ("Gaussian noise", "local_gaussian(1.0)"),
    )
    for name, randomizer in named[:4]:
        yield (
            f"same pair: {name}, blanket, n = 1e4, 64 rounds",
            f"spent((blanket({randomizer}), 64)).get_epsilon(1e-6)",
        )
    for name, randomizer in named:
        for rounds in (1, 64):
            yield (
                f"Shuffled: {name}, n = 1e4, {rounds} rounds",
                f"spent((Shuffled({randomizer}, 10_000), {rounds})).get_epsilon(1e-6)",
            )
    yield (
        "Subsampled, 5,000 of 1e6, 2,000 rounds",
        "spent((Subsampled(ShuffledLDP(6.0, 5_000), population=10**6), 2_000)).get_epsilon(1e-6)",
    )


def main() -> None:
    parser = harness.parser(__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="a checkout of the older version")
    arguments = parser.parse_args()
    folders = (harness.CHECKOUT, arguments.folder.resolve())
    processes = [harness.serve(folder, COMMON) for folder in folders]
    rows = []
    for name, expression in questions():
        row: harness.Row = {"question": name}
        for version, process in zip(("", "older_"), processes, strict=True):
            found = harness.ask(process, expression, 1 if arguments.quick else 5)
            row[f"{version}ms"], row[f"{version}epsilon"] = found
        row["ratio"] = row["ms"] / row["older_ms"]
        print(harness.table([row], list(row)).splitlines()[-1], flush=True)
        rows.append(row)
    columns = ["question", "ms", "older_ms", "ratio", "epsilon", "older_epsilon"]
    print(harness.table(rows, columns))
    harness.save(arguments, "against_release", {"rows": rows})


if __name__ == "__main__":
    main()

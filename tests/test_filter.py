"""Filters: no strategy that looks at outputs spends more than the budget; by enumeration that shares nothing with them.

The strongest strategies are found exactly, by dynamic programming over the running loss: mechanisms have two outcomes
whose losses are multiples of a step. (Weaker ones at random: benchmarks/adaptive.py.)
"""

from __future__ import annotations

import copy
import json
import math
import pickle
from functools import cache
from pathlib import Path

import mpmath
import numpy as np
import pytest
from oracles import gaussian

from pld_shuffle import (
    Accountant,
    BudgetExceeded,
    CheckpointError,
    CountedBits,
    DiscretePair,
    Gaussian,
    IndividualFilter,
    Laplace,
    PrivacyFilter,
    PrivacyOdometer,
    RenyiAccountant,
    ShuffledLDP,
    Subsampled,
)
from pld_shuffle.cli import main
from pld_shuffle.composition.exchange import GaussianBudget, exchange_price

Masses = list[tuple[float, float]]  # (P, Q) of every outcome

STEP = ShuffledLDP(eps0=2.0, n=10_000)


def coin(eps: float) -> DiscretePair:
    """Binary randomised response: losses +-eps."""
    return outcomes([(math.exp(eps), 1.0), (1.0, math.exp(eps))])


def outcomes(weights: Masses, *, symmetric: bool = True) -> DiscretePair:
    p, q = (np.array([row[i] for row in weights]) for i in (0, 1))
    return DiscretePair(np.log(p / p.sum()), np.log(q / q.sum()), symmetric)


THREE = [(0.5, 0.45), (0.3, 0.25), (0.2, 0.3)]  # different in its two orders


# --- prices ----------------------------------------------------------------------------------


def hockey(square: float, y: mpmath.mpf) -> mpmath.mpf:
    """H of Gaussian noise at e^y, in 40 digits."""
    return gaussian(mpmath.sqrt(square), y) if square else max(mpmath.mpf(0), 1 - mpmath.exp(y))


def exchanged(pair: DiscretePair, cushion: float, y: float, turned: bool) -> mpmath.mpf:
    """E V_cushion(y - L) of one order of a finite pair."""
    total = mpmath.mpf(0)
    for log_p, log_q in zip(pair.log_p, pair.log_q, strict=True):
        first, second = (log_q, log_p) if turned else (log_p, log_q)
        total += mpmath.exp(first) * hockey(cushion, mpmath.mpf(y) - first + second)
    return total


PRICED = [
    (coin(0.3), 16.0, 1e-7),
    (coin(0.1), 64.0, 1e-4),
    (coin(1.5), 1.0, 1e-3),
    (coin(0.5), 0.0, 1e-6),
    (outcomes(THREE), 4.0, 1e-5),
    (outcomes(THREE), 0.25, 1e-9),
    (outcomes([(0.9, 0.9), (0.099, 0.02), (0.001, 0.08)]), 16.0, 1e-6),
]


@pytest.mark.parametrize(("mechanism", "cushions", "allowance"), PRICED)
def test_a_round_and_its_cushion_are_no_worse_than_noise(
    mechanism: DiscretePair, cushions: float, allowance: float
) -> None:
    """(*) of `composition.exchange` at many real y, in either order of the pair."""
    square = mechanism.pair.scale**2
    cushion = cushions * square
    price = exchange_price(mechanism.pair, cushion, allowance)
    width = math.sqrt(cushion + price)
    rng = np.random.default_rng(1)
    with mpmath.workdps(40):
        for y in [*rng.uniform(-9.0 * width, 9.0 * width, 80), *rng.normal(0.0, width, 40), 0.0]:
            for turned in (False, True):
                spent = exchanged(mechanism, cushion, float(y), turned)
                assert spent <= hockey(cushion + price, mpmath.mpf(float(y))) + allowance * price


@pytest.mark.parametrize(("mechanism", "cushions", "allowance"), PRICED[:4])
def test_a_price_is_tight(mechanism: DiscretePair, cushions: float, allowance: float) -> None:
    """One per cent less is not enough somewhere. (Where two orders differ, the larger one at every y is paid.)"""
    cushion = cushions * mechanism.pair.scale**2
    price = 0.99 * exchange_price(mechanism.pair, cushion, allowance)
    width = math.sqrt(cushion + price)
    with mpmath.workdps(30):
        wrong = [
            exchanged(mechanism, cushion, y, False) - hockey(cushion + price, mpmath.mpf(y)) - allowance * price
            for y in np.linspace(0.0, 8.0 * width, 400).tolist()
        ]
    assert max(wrong) > 0


def test_the_budget_is_that_of_gaussian_noise() -> None:
    """Gaussian noise costs what it is: the budget admits as much of it as an accountant would, but for 0.1 %."""
    run, step = PrivacyFilter(epsilon=1.0, delta=1e-6), Gaussian(sigma=100.0)
    count = 0
    while run.admits(step, count + 1):
        count += 1
    assert Accountant().compose(step, count).get_epsilon(1e-6) <= 1.0
    assert Accountant().compose(step, count).get_epsilon(1e-6) >= 0.998


# --- the strongest strategies ----------------------------------------------------------------


Size = int | tuple[int, int]  # of a coin; or of two outcomes: what one of them gains, and the other one loses


def of_size(size: Size, step: float) -> tuple[DiscretePair, list[list[tuple[int, float]]]]:
    """Two outcomes whose losses are multiples of a step, and the law of the loss in either order."""
    gain, loss = (size, size) if isinstance(size, int) else size
    p = math.expm1(loss * step) / (math.exp(loss * step) - math.exp(-gain * step))
    q = p * math.exp(-gain * step)
    orders = [[(gain, p), (-loss, 1.0 - p)], [(-gain, q), (loss, 1.0 - q)]]
    return outcomes([(p, q), (1.0 - p, 1.0 - q)]), orders[: 1 if gain == loss else 2]


def strongest(run: PrivacyFilter, step: float, sizes: tuple[Size, ...], cheaper: float = 1.0, held: int = 0) -> float:
    """The largest delta at the filter's epsilon over all strategies with pairs of these sizes, in either order.

    Backwards over what is left: an array over the running loss, of the best a strategy can reach from there. cheaper :
    what prices are multiplied with. held : so many rounds of the first pair are reserved.
    """
    known = [of_size(size, step) for size in sizes]
    budget, start = run._budget, (run._left, held)
    following: dict[tuple[float, int], list[tuple[float, int]]] = {}
    found = [start]
    while found:
        here = left, kept = found.pop()
        if here in following:
            continue
        following[here] = []
        for i, (mechanism, _) in enumerate(known):
            after = budget.after(mechanism.pair, left)
            after = left - cheaper * (left - after) if after >= 0.0 else after
            following[here].append((left, kept - 1) if i == 0 and kept else (after, kept))
        found += [after for after in following[here] if after[0] >= 0.0]
    ends = math.ceil(run.epsilon / step) + 150 * max(moved for _, orders in known for moved, _ in orders[0])
    loss = step * np.arange(-ends, ends + 1)
    values: dict[tuple[float, int], np.ndarray] = {}

    def moved(value: np.ndarray, steps: int) -> np.ndarray:
        return np.append(value[steps:], np.ones(steps)) if steps > 0 else np.append(np.zeros(-steps), value[:steps])

    for here in sorted(following, key=lambda state: (state[1], state[0])):
        best = np.maximum(0.0, -np.expm1(run.epsilon - loss))
        for (_, orders), after in zip(known, following[here], strict=True):
            for law in orders if after[0] >= 0.0 else ():
                best = np.maximum(best, sum(mass * moved(values[after], steps) for steps, mass in law))
        values[here] = best
    return float(values[start][ends])


@pytest.mark.parametrize(
    ("epsilon", "delta", "step", "sizes", "order"),
    [
        (1.0, 1e-2, 0.1, (1, 2, 3), None),
        (1.0, 1e-3, 0.1, (1, 2), None),
        (0.5, 1e-2, 0.05, (1, 3), None),
        (1.5, 1e-2, 0.1, (2, 5), None),
        (1.0, 1e-2, 0.1, (1, 2, 3), 5.0),
        (1.0, 1e-3, 0.1, (1, 4), 8.0),
        (1.0, 1e-2, 0.1, (1, (3, 1)), None),
        (0.8, 1e-2, 0.1, ((1, 2), (4, 1)), None),
        (1.0, 1e-2, 0.1, (1, (3, 1)), 5.0),
        (0.6, 1e-1, 0.1, (1, (2, 1)), math.inf),
    ],
)
def test_no_strategy_spends_more_than_the_budget(
    epsilon: float, delta: float, step: float, sizes: tuple[Size, ...], order: float | None
) -> None:
    run = PrivacyFilter(epsilon, delta, order=order)
    assert strongest(run, step, sizes) <= delta


def test_cheaper_prices_would_be_wrong() -> None:
    """The strongest strategy uses 70 % of delta, and more than all of it if rounds cost 10 % less."""
    run = PrivacyFilter(1.0, 1e-2)
    assert strongest(run, 0.1, (1, 2, 3)) > 0.7e-2
    assert strongest(run, 0.1, (1, 2, 3), cheaper=0.9) > 1e-2


def test_reserved_rounds_are_free_and_others_are_paid() -> None:
    """Twenty coins reserved, at any time; of the rest of the budget, coins of another kind, and more of these."""
    small, epsilon, delta = coin(0.1), 1.0, 1e-2
    run = PrivacyFilter(epsilon, delta, reserved=[(small, 20)])
    assert 0.5e-2 < strongest(run, 0.1, (1, 3), held=20) <= delta
    needed = Accountant().compose(small, 20).get_epsilon(delta)
    least = PrivacyFilter(needed * (1.0 + 1e-9), delta, reserved=[(small, 20)])
    assert least.remaining == 0.0
    assert least.admits(small, 20) and not least.admits(small, 21) and not least.admits(coin(0.3))
    least.compose(small, 12)
    again = PrivacyFilter.from_json(least.to_json())
    assert again == least and again.admits(small, 8) and not again.admits(small, 9)
    with pytest.raises(ValueError, match="reserved rounds must fit"):
        PrivacyFilter(0.99 * needed, delta, reserved=[(small, 20)])


def test_rounds_of_bits_are_reserved_one_by_one() -> None:
    """Their accountant knows of many rounds together what does not hold with others in between."""
    bits = CountedBits(n=500, eps0=1.0)
    needed = Accountant().compose(bits, 3).get_epsilon(1e-6)
    run = PrivacyFilter(1.2 * needed, 1e-6, reserved=[(bits, 3)])
    assert run.compose(bits, 2).admits(bits)
    assert run.remaining == 1.0


# --- the filter as an object -----------------------------------------------------------------


def test_rounds_at_once_are_rounds_one_by_one() -> None:
    """Also of a loop that makes its mechanism anew in every round: prices, and memory, do not grow."""
    one = PrivacyFilter(1.0, 1e-6)
    for _ in range(40):
        one.compose(ShuffledLDP(eps0=2.0, n=10_000))
    many = PrivacyFilter(1.0, 1e-6).compose(STEP, 40)
    assert many.remaining == pytest.approx(one.remaining, rel=1e-9)
    assert many.ledger == one.ledger
    assert isinstance(one._budget, GaussianBudget)
    assert len({pair for pair, _ in one._budget._prices}) == len(one._pairs) == 1


def test_what_is_not_admitted_is_not_composed() -> None:
    run = PrivacyFilter(1.0, 1e-6).compose(STEP, 40)
    before = json.loads(run.to_json())
    assert not run.admits(STEP, 1_000)
    with pytest.raises(BudgetExceeded, match="mechanism must fit"):
        run.compose(STEP, 1_000)
    after = json.loads(run.to_json())
    del before["written"], after["written"]  # their time may differ
    assert after == before


def test_what_adaptivity_costs_on_a_run_of_equal_rounds() -> None:
    """Less than 1 % in epsilon where Renyi divergences cost 8 %."""
    step = Subsampled(ShuffledLDP(eps0=4.0, n=5_000), population=1_000_000)
    plain = Accountant().compose(step, 500).get_epsilon(1e-6)
    needed = PrivacyFilter.least_epsilon([(step, 500)], 1e-6)
    assert plain <= needed <= 1.01 * plain
    assert PrivacyFilter(needed, 1e-6, planned=[(step, 500)]).order is None
    with pytest.raises(ValueError, match="planned must fit"):
        PrivacyFilter(0.998 * needed, 1e-6, planned=[(step, 500)])
    assert RenyiAccountant().compose(step, 500).get_epsilon(1e-6) > 1.05 * plain


def test_the_plan_says_how_rounds_are_paid() -> None:
    """Three rounds of Laplace noise are best paid with largest losses, which add up to the budget."""
    noisy = Laplace(scale=1.0)
    run = PrivacyFilter(3.0, 1e-6, planned=[(noisy, 3)])
    assert run.order is not None
    assert PrivacyFilter(1.02, 1e-6, planned=[(STEP, 66)]).order is None
    with pytest.raises(ValueError, match="planned must fit"):
        PrivacyFilter(1.0, 1e-6, planned=[(STEP, 100)])
    assert run.compose(noisy, 3).remaining < 1e-4
    needed = PrivacyFilter.least_epsilon([(noisy, 3), (STEP, 1)], 1e-6)
    assert 3.0 < needed < 4.0
    assert PrivacyFilter(needed, 1e-6, planned=[(noisy, 3), (STEP, 1)]).remaining == 1.0


def test_pairs_of_one_order_need_an_order() -> None:
    known = outcomes(THREE, symmetric=False)
    with pytest.raises(ValueError, match="both orders"):
        PrivacyFilter(1.0, 1e-3).admits(known)
    assert PrivacyFilter(1.0, 1e-3, planned=[(known, 2)]).order is not None
    assert PrivacyFilter.least_epsilon([(known, 2)], 1e-3) >= Accountant().compose(known, 2).get_epsilon(1e-3)


@pytest.mark.parametrize("order", [None, 12.5, math.inf])
def test_a_filter_goes_on_where_it_was(order: float | None) -> None:
    run = PrivacyFilter(9.0, 1e-6, order=order).compose(STEP, 2)
    run.compose(ShuffledLDP(eps0=1.0, n=10_000))
    for again in (PrivacyFilter.from_json(run.to_json()), copy.copy(run), pickle.loads(pickle.dumps(run))):
        assert again == run
        assert again.remaining == run.remaining
        assert again.compose(STEP).remaining == copy.copy(run).compose(STEP).remaining
    for name in ("left", "total"):
        with pytest.raises(CheckpointError, match=f"{name} must be"):
            PrivacyFilter.from_json(run.to_json().replace(f'"{name}": ', f'"{name}": 1'))


def test_a_log_is_admitted_as_a_whole_or_not_at_all() -> None:
    rows = [{"n": 10_000, "eps0": 2.0, "count": 30}, {"n": 10_000, "eps0": 3.0, "count": 5}]
    run = PrivacyFilter(1.0, 1e-6).compose_log(rows)
    assert run.rounds == 35
    assert run.remaining == pytest.approx(
        PrivacyFilter(1.0, 1e-6).compose(STEP, 30).compose(ShuffledLDP(3.0, 10_000), 5).remaining
    )
    with pytest.raises(BudgetExceeded):
        run.compose_log(rows)
    assert run.rounds == 35


def test_a_filter_answers_as_an_accountant_does() -> None:
    """What bridges ask: the guarantee is the budget's, and nothing is said of a smaller one."""
    run = PrivacyFilter(1.0, 1e-6)
    assert (run.get_epsilon(1e-6), run.get_epsilon(1e-5)) == (1.0, 1.0)
    assert (run.get_epsilon(1e-7), run.get_delta(1.0), run.get_delta(0.9)) == (math.inf, 1e-6, 1.0)
    assert not run.would_exceed(STEP, epsilon=1.0, delta=1e-6, count=30)
    assert run.would_exceed(STEP, epsilon=1.0, delta=1e-6, count=300)
    assert run.would_exceed(STEP, epsilon=0.9, delta=1e-6)


def test_assumptions_say_what_was_adaptive() -> None:
    said = PrivacyFilter(1.0, 1e-6).assumptions()
    assert "earlier outputs" in said["adaptivity"]
    assert "Gaussian noise" in said["analysis"]
    assert "order 8" in PrivacyFilter(1.0, 1e-6, order=8.0).assumptions()["analysis"]


# --- odometers -------------------------------------------------------------------------------


@pytest.mark.parametrize("orders", [(5.0,), (3.0, 9.0, 30.0)])
def test_no_time_to_stop_beats_an_odometer(orders: tuple[float, ...]) -> None:
    """E(1 - e^(epsilon - L))_+ <= delta for the best strategy of choosing and stopping, by the epsilon shown."""
    step, sizes, delta, most = 0.1, (1, 4), 0.01, 9
    coins = [coin(size * step) for size in sizes]
    chances = [1.0 / (1.0 + math.exp(-size * step)) for size in sizes]

    @cache
    def shown(counts: tuple[int, int]) -> float:
        run = PrivacyOdometer(delta, orders)
        for mechanism, count in zip(coins, counts, strict=True):
            if count:
                run.compose(mechanism, count)
        return run.get_epsilon()

    @cache
    def worst(counts: tuple[int, int], loss: int) -> float:
        best = max(0.0, -math.expm1(shown(counts) - loss * step))
        for i, size in enumerate(sizes):
            after = (counts[0] + (i == 0), counts[1] + (i == 1))
            if max(after) <= most:
                up, down = worst(after, loss + size), worst(after, loss - size)
                best = max(best, chances[i] * up + (1.0 - chances[i]) * down)
        return best

    assert 0.01 * delta < worst((0, 0), 0) <= delta


def test_an_odometer_is_above_the_accountant_and_near_the_plan() -> None:
    run = PrivacyOdometer.planned([(STEP, 100)], 1e-6)
    assert run.get_epsilon() == 0.0
    for count in (1, 9, 90):
        run.compose(STEP, count)
        plain = Accountant().compose(STEP, run.rounds).get_epsilon(1e-6)
        assert plain < run.get_epsilon() < 2.2 * plain
    assert run.get_epsilon() < 1.25 * plain
    assert PrivacyOdometer.from_json(run.to_json()).get_epsilon() == run.get_epsilon()


# --- individuals -----------------------------------------------------------------------------


def test_every_user_has_the_filter_of_its_cap() -> None:
    """As if each had a `PrivacyFilter`, but for the allowance for tails, which is that of the largest budget."""
    caps = np.array([0.3, 0.6, 0.6, 1.2])
    many = IndividualFilter(caps, 1e-6)
    single = [PrivacyFilter(float(cap), 1e-6) for cap in caps]
    rng = np.random.default_rng(3)
    stronger = ShuffledLDP(eps0=3.5, n=10_000)
    for _ in range(150):
        mechanism = (STEP, stronger)[rng.integers(2)]
        users = np.flatnonzero(rng.random(4) < 0.6)
        took_part = many.compose(mechanism, users)
        for user, fits in zip(users, took_part, strict=True):
            if fits:
                before = single[user].remaining
                assert many.remaining[user] <= before
                if single[user].admits(mechanism):
                    single[user].compose(mechanism)
    left = np.array([run.remaining for run in single])
    assert np.allclose(many.remaining, left, atol=2e-3)
    assert not many.admits(stronger)[0]


def test_a_million_users() -> None:
    many = IndividualFilter(np.ones(10**6), 1e-6)
    cohort = np.arange(0, 10**6, 200)
    for _ in range(50):
        assert many.compose(STEP, cohort).all()
    assert np.all(many.remaining[cohort] < 0.3)
    assert np.all(many.remaining[1:200] == 1.0)
    assert many.compose(STEP).all()


# --- the command line ------------------------------------------------------------------------


def test_the_command_line_has_a_filter_and_an_odometer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, plan = tmp_path / "log.csv", tmp_path / "plan.csv"
    log.write_text("n,eps0,count\n10000,2,30\n10000,3,5\n10000,2,40\n", encoding="utf-8")
    plan.write_text("n,eps0,count\n10000,2,100\n", encoding="utf-8")
    asked, stronger = ["account", str(log), "--delta", "1e-6"], ShuffledLDP(3.0, 10_000)

    def told(status: int, *more: str) -> str:
        assert main([*asked, *more]) == status
        return "".join(capsys.readouterr())

    shown = told(0, "--adaptive", "--epsilon", "1.2")
    assert "The log fits" in shown and "earlier outputs" in shown
    found = json.loads(told(3, "--adaptive", "--epsilon", "1", "--json"))["adaptive"]
    run = PrivacyFilter(1.0, 1e-6).compose(STEP, 30).compose(stronger, 5)
    assert (found["refused_row"], found["admitted_rounds"], found["remaining"]) == (3, 35, run.remaining)
    planned = ("--planned", str(plan))
    found = json.loads(told(0, "--adaptive", *planned, "--json"))
    odometer = PrivacyOdometer.planned([(STEP, 100)], 1e-6).compose(STEP, 70).compose(stronger, 5)
    assert found["odometer"] == {"epsilon": odometer.get_epsilon(), "delta": 1e-6, "rounds": 75}
    assert any("fixed before" in text for text in found["assumptions"]["analysis"])
    for wrong in (("--epsilon", "1", "2"), (*planned, "--epsilon", "1")):
        assert "needs one --epsilon, the budget, or --planned, a log" in told(2, "--adaptive", *wrong)
    assert "goes with --adaptive" in told(2, *planned)

"""dp_accounting: what goes out is an upper bound, what comes in is what it was; one accountant for both."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from oracles import hockey_stick
from test_honesty import composed_of

from pld_shuffle import (
    Accountant,
    DiscretePair,
    PoissonSampled,
    RandomAllocation,
    ShuffledLDP,
    ShuffledRR,
    Subsampled,
)
from pld_shuffle.mechanisms import ZeroOut
from pld_shuffle.mechanisms.central import Gaussian, Laplace, PoissonGaussian
from pld_shuffle.mechanisms.imported import ImportedPair
from pld_shuffle.risk import AttackRisk

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("dp_accounting")
    from dp_accounting import dp_event, privacy_accountant, rdp
    from dp_accounting.pld import common, pld_pmf, pld_privacy_accountant
    from dp_accounting.pld import privacy_loss_distribution as peer

    from pld_shuffle.interop import dp_accounting as bridge
    from pld_shuffle.interop.dp_accounting import (
        MechanismEvent,
        ShufflePrivacyAccountant,
        from_dp_accounting,
        to_dp_accounting,
        to_event,
    )

Relation = privacy_accountant.NeighboringRelation
REPLACE, SPECIAL = Relation.REPLACE_ONE, Relation.REPLACE_SPECIAL
SMALL = ShuffledLDP(2.0, 300)


def shuffled(eps0: float, n: int) -> Any:
    """A round as an event."""
    return MechanismEvent(ShuffledLDP(eps0, n))


def replaced_gaussian(noise: float, rate: float = 1.0, **options: Any) -> Any:
    """The peer's (Poisson-subsampled) Gaussian for replacement."""
    return peer.from_gaussian_mechanism(noise, sampling_prob=rate, neighboring_relation=REPLACE, **options)


# --- out --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", [
    SMALL,
    ShuffledRR(4, 200, gamma=0.3),
    Subsampled(ShuffledLDP(3.0, 100), population=1000),
    Gaussian(sigma=1.5),
])  # fmt: skip
def test_an_exported_round_is_an_upper_bound_and_tight(mechanism: Any) -> None:
    """The peer reads at least our certified lower delta, and at most what the grid costs more."""
    grid = mechanism.pair.scale / 50
    out = to_dp_accounting(mechanism, discretization=grid)
    ours = Accountant(1e-5).compose(mechanism)
    for multiple in (0.0, 0.013, 0.5, 1.0, 2.0, 3.0):
        eps = multiple * mechanism.pair.scale
        bounds = ours.delta_bounds(eps)
        found = out.get_delta_for_epsilon(eps)
        assert found >= bounds.lower * (1 - 1e-12)
        assert found <= bounds.upper * 1.002 + 1e-15


def test_slack_and_infinite_mass_go_along() -> None:
    """Losses that may be off by a third of a step are exported that much higher; infinite ones keep their mass."""
    loose = replace(LAW, loss_error=0.0033)
    out = bridge._exported(loose)
    for eps in (0.0, 0.0049, 0.1, 0.1033, 0.2967, 0.5, 1.0):
        assert out.get_delta_for_epsilon(eps) >= loose.delta(eps) * (1 - 1e-10)
        assert out.get_delta_for_epsilon(eps) > LAW.delta(eps)
    exact = bridge._exported(LAW)
    assert exact.get_delta_for_epsilon(0.1) == pytest.approx(LAW.delta(0.1), rel=1e-9)
    infinity_mass = ShuffledRR(4, 3, gamma=0.3).pld(step=0.01)
    assert infinity_mass.infinity > 0.01
    assert bridge._exported(infinity_mass).get_delta_for_epsilon(math.inf) == infinity_mass.infinity


LAW = SMALL.pld(step=0.01)
LOGS = tuple(np.log([0.5, 0.3, 0.2]).tolist()), tuple(np.log([0.2, 0.2, 0.6]).tolist())
ONE_ORDER = DiscretePair(*LOGS, symmetric=False)


@pytest.mark.parametrize(("call", "error", "words"), [
    # A grid as fine as rounding, and what is no law.
    (lambda: bridge._exported(replace(LAW, loss_error=0.01)), ValueError, "above the rounding"),
    (lambda: bridge._exported(replace(LAW, masses=0.9 * LAW.masses)), ArithmeticError, "mass"),
    (lambda: to_dp_accounting(SMALL, discretization=-1.0), ValueError, "discretization must be positive"),
    (lambda: to_dp_accounting("gaussian"), TypeError, "mechanism"),
    (lambda: from_dp_accounting(SMALL, REPLACE), TypeError, "PrivacyLossDistribution"),
    (lambda: from_dp_accounting(peer.identity(), "replace-one"), TypeError, "NeighboringRelation"),
    # One order of two neighbours says nothing about the other, and REPLACE_ONE has both.
    (lambda: MechanismEvent(ONE_ORDER), ValueError, "symmetric pair"),
    (lambda: to_dp_accounting(ONE_ORDER, discretization=0.01), ValueError, "symmetric pair"),
    *((lambda one=one: to_event(Accountant().compose(one)), ValueError, r"composed must be .*, got .*to_dp_accounting")
      for one in (SMALL, RandomAllocation(Gaussian(sigma=1.0), 10), Subsampled(SMALL, population=3000))),
    (lambda: to_event(dp_event.GaussianDpEvent(1.0)), TypeError, "mechanism"),
    (lambda: MechanismEvent(dp_event.GaussianDpEvent(1.0)), TypeError, "mechanism"),
    (lambda: ShufflePrivacyAccountant(Relation.ADD_OR_REMOVE_ONE), ValueError, "REPLACE_ONE"),
])  # fmt: skip
def test_refused(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


# --- in ---------------------------------------------------------------------------------------


def exact_delta(pair: ImportedPair, expm1_eps: float) -> Any:
    """delta at s = 1 + growth in 60 digits."""
    losses = [(pair.low + i) * mp.mpf(pair.step) for i in range(len(pair.masses))]
    atoms = [(mass, mass * mp.exp(-loss)) for mass, loss in zip(pair.masses, losses, strict=True)]
    return pair.infinity + hockey_stick(atoms, 1 + mp.mpf(expm1_eps))


@pytest.mark.parametrize("step,low,size", [(0.1, 1, 40), (1e-4, 7, 90), (0.37, 3, 5)])
def test_the_profile_of_masses_encloses_exact_sums(step: float, low: int, size: int) -> None:
    """At lattice points, an ulp beside them, between them, below all and above all."""
    rng = np.random.default_rng(size)
    masses = rng.uniform(0.1, 1.0, size) * np.exp(-0.3 * np.arange(size))
    masses *= 0.4 / masses.sum()
    pair = ImportedPair(step, low, tuple(masses.tolist()), 1e-7, "replace-one")
    points = np.expm1(step * np.arange(0, low + size + 3))
    asked = [0.0, *points, *np.nextafter(points[1:], 0), *np.nextafter(points[1:], 9e9)]
    asked += rng.uniform(0.0, 1.1 * points[-1], 60).tolist()
    found = pair.pair.profile(np.array(asked), 0.0, 0.0)
    for expm1_eps, low_end, high_end in zip(asked, found.lower, found.upper, strict=True):
        exact = exact_delta(pair, expm1_eps)
        assert low_end <= exact <= high_end
        assert high_end <= low_end * (1 + 1e-9) + 1e-14


def test_imported_gaussians_are_above_and_close() -> None:
    """Pessimistic masses against the exact profile, which is not computed from masses."""
    theirs = replaced_gaussian(1.0, 0.1, value_discretization_interval=2e-3)
    imported = from_dp_accounting(theirs, REPLACE)
    assert isinstance(imported, ImportedPair)
    expm1_eps = np.expm1(np.array([0.0, 0.05, 0.2, 0.5, 1.0, 2.0]))
    exact = PoissonGaussian(1.0, 0.1).pair.profile(expm1_eps, 0.0, 0.0)
    found = imported.pair.profile(expm1_eps, 0.0, 0.0)
    assert np.all(found.upper >= exact.lower - 1e-14)
    assert np.all(found.upper <= exact.upper * 1.0005)


def test_two_orders_count_as_the_worse_one() -> None:
    """Addition and removal differ under Poisson sampling: the larger delta everywhere, also composed."""
    theirs = peer.from_gaussian_mechanism(1.0, sampling_prob=0.2, value_discretization_interval=5e-3)
    worse = from_dp_accounting(theirs, Relation.ADD_OR_REMOVE_ONE)
    assert worse.reverse is not None
    first, second = replace(worse, reverse=None), worse.reverse
    assert np.any(
        first.pair.profile(np.array([0.1]), 0.0, 0.0).upper != second.pair.profile(np.array([0.1]), 0.0, 0.0).upper
    )
    other_way = replace(second, reverse=first)
    for eps in (0.0, 0.1, 0.2, 0.5):
        found = worse.pair.profile(np.array([math.expm1(eps)]), 0.0, 0.0)
        assert other_way.pair.profile(np.array([math.expm1(eps)]), 0.0, 0.0) == found
        assert found.lower[0] - 1e-12 <= theirs.get_delta_for_epsilon(eps) <= found.upper[0] + 1e-12
    composed, ours = theirs.self_compose(6), Accountant().compose(worse, 6)
    for eps in (0.3, 1.0, 2.0):
        assert composed.get_delta_for_epsilon(eps) <= ours.get_delta(eps) * (1 + 1e-9) + 1e-12
        assert ours.get_delta(eps) <= composed.get_delta_for_epsilon(eps) * 1.3
    with pytest.raises(ValueError, match="two orders"):
        from_dp_accounting(theirs, REPLACE)
    for mechanism in (worse, first):
        with pytest.raises(TypeError):
            Subsampled(mechanism, rate=0.5)
        with pytest.raises(ValueError, match="replace-one"):
            MechanismEvent(mechanism)


def test_missing_mass_is_at_infinity_and_negative_noise_is_dropped() -> None:
    """A deficit within rounding makes delta larger by as much; negative noise counts as none."""
    masses = np.array([0.3, 0.4, -1e-17, 0.3 - 2e-10])
    pmf = pld_pmf.DensePLDPmf(0.5, -1, masses, 0.0, True)
    pair = from_dp_accounting(peer.PrivacyLossDistribution(pmf), REPLACE)
    assert isinstance(pair, ImportedPair)
    assert pair.infinity == pytest.approx(2e-10, rel=1e-5) and pair.masses == (0.0, masses[3])
    assert pair.low == 1 and pair.pair.max_loss.upper == math.inf
    assert pair.pair.profile(np.array([math.expm1(1.5)]), 0.0, 0.0).lower[0] >= 1.9e-10


@pytest.mark.parametrize(
    "masses,infinity,pessimistic",
    [
        ([0.3, 0.4, 0.2], 0.0, True), ([0.3, 0.4, 0.4], 0.0, True), ([0.3, 0.4, math.nan], 0.0, True),
        ([0.3, -0.4, 1.1], 0.0, True), ([0.3, 0.3], 0.0, True), ([0.5, 0.5], -1e-3, True),
        ([0.3, 0.4, 0.3], 0.0, False),
    ],
)  # fmt: skip
def test_import_refuses_what_is_no_distribution(masses: Any, infinity: float, pessimistic: bool) -> None:
    """Mass missing, too much, not finite, negative; an optimistic one."""
    pmf = pld_pmf.DensePLDPmf(0.5, -1, np.array(masses), infinity, pessimistic)
    with pytest.raises(ValueError, match="distribution"):
        from_dp_accounting(peer.PrivacyLossDistribution(pmf), REPLACE)


def test_a_misread_distribution_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the masses read do not give the distribution's own deltas, that is an error and no number."""
    theirs = replaced_gaussian(2.0, value_discretization_interval=1e-2)
    monkeypatch.setattr(theirs, "_pmf_remove", replaced_gaussian(1.9)._pmf_remove)
    assert from_dp_accounting(theirs, REPLACE)  # consistent again
    monkeypatch.setattr(theirs, "get_delta_for_epsilon", lambda eps: 0.3)
    with pytest.raises(ValueError, match="misread"):
        from_dp_accounting(theirs, REPLACE)


def test_sparse_distributions_and_trivial_ones() -> None:
    """(eps, delta)-DP as a distribution; no loss at all; infinite loss only."""
    parameters = common.DifferentialPrivacyParameters(0.5, 1e-3)
    pair = from_dp_accounting(peer.from_privacy_parameters(parameters, value_discretization_interval=0.1), REPLACE)
    bounds = Accountant().compose(pair).delta_bounds([0.0, 0.55, 3.0])
    exact = np.array([1e-3 + 0.999 * math.tanh(0.25), 1e-3, 1e-3])
    assert np.all(bounds.lower <= exact * (1 + 1e-12))
    assert np.all(exact <= bounds.upper * (1 + 1e-12)) and np.all(bounds.upper <= exact * 1.002)
    nothing = from_dp_accounting(peer.identity(), REPLACE)
    assert Accountant().compose(nothing, 5).get_epsilon(0.0) == 0.0
    only = ImportedPair(0.1, 1, (), 0.25, "replace-one")
    found = Accountant().compose(only, 2).delta_bounds(3.0)
    assert found.lower <= 1 - 0.75**2 <= found.upper <= (1 - 0.75**2) * 1.001


# --- the accountant -----------------------------------------------------------------------------


def test_gaussian_laplace_and_randomized_response_as_the_peer_has_them() -> None:
    """Under REPLACE_ONE, against the peer's own distributions for it."""
    grid = {"value_discretization_interval": 1e-3}
    response = peer.from_randomized_response(0.6, 5, neighboring_relation=REPLACE, **grid)
    for event, theirs in (
        (dp_event.GaussianDpEvent(3.0), replaced_gaussian(3.0, **grid)),
        (dp_event.RandomizedResponseDpEvent(0.6, 5), response),
        # The peer has no Laplace mechanism for replacement: twice the sensitivity, by definition.
        (dp_event.LaplaceDpEvent(4.0), peer.from_laplace_mechanism(4.0, sensitivity=2.0, **grid)),
    ):
        bounds = ShufflePrivacyAccountant().compose(event, 4).epsilon_bounds(1e-5)
        found = theirs.self_compose(4).get_epsilon_for_delta(1e-5)
        assert bounds.lower - 1e-9 <= found <= bounds.upper + 4 * 1e-3
        assert bounds.upper <= bounds.lower * 1.001


POISSON, FIXED = dp_event.PoissonSampledDpEvent, dp_event.SampledWithoutReplacementDpEvent
GAUSSIAN = dp_event.GaussianDpEvent
READ = [
    (REPLACE, FIXED(3000, 300, shuffled(2.0, 300)), Subsampled(SMALL, population=3000)),
    (REPLACE, FIXED(1000, 20, GAUSSIAN(2.0)), Subsampled(Gaussian(sigma=2.0, sensitivity=2.0), rate=0.02)),
    (REPLACE, POISSON(0.1, GAUSSIAN(1.0)), PoissonGaussian(1.0, 0.1)),
    (REPLACE, POISSON(0.1, shuffled(1.0, 100)), PoissonSampled(ShuffledLDP(1.0, 100), 0.1)),
    (REPLACE, MechanismEvent(SMALL), SMALL),
    (SPECIAL, POISSON(0.1, shuffled(1.0, 1000)), ZeroOut(PoissonSampled(ShuffledLDP(1.0, 1000), 0.1))),
    (SPECIAL, FIXED(1000, 100, shuffled(1.0, 100)), ZeroOut(Subsampled(ShuffledLDP(1.0, 100), population=1000))),
    (SPECIAL, MechanismEvent(ZeroOut(SMALL)), ZeroOut(SMALL)),
    (SPECIAL, GAUSSIAN(3.0), ZeroOut(Gaussian(sigma=3.0))),
    (SPECIAL, dp_event.LaplaceDpEvent(2.0), ZeroOut(Laplace(scale=2.0))),
    (SPECIAL, POISSON(0.1, GAUSSIAN(1.5)), ZeroOut(PoissonGaussian(1.5, 0.1))),
]  # fmt: skip


@pytest.mark.parametrize(("relation", "event", "mechanism"), READ, ids=str)
def test_events_are_read_as_mechanisms(relation: Any, event: Any, mechanism: Any) -> None:
    """Sampling with fixed size and Poisson sampling, for a shuffler and for a curator, in both relations."""
    found = ShufflePrivacyAccountant(relation).compose(event, 7)
    assert found._accountant.ledger == ((mechanism, 7),)


LEDGERS = [
    (SPECIAL, "pld", [(ZeroOut(Gaussian(sigma=3.0, sensitivity=1.5)), 4), (ZeroOut(Laplace(scale=4.0)), 2)], 1.001),
    (SPECIAL, "pld", [(ZeroOut(PoissonGaussian(1.5, 0.1, 2.0)), 20)], 1.001),
    (SPECIAL, "rdp", [(ZeroOut(PoissonGaussian(1.5, 0.1)), 20), (ZeroOut(Gaussian(sigma=3.0)), 2)], 1.3),
    (REPLACE, "pld", [(PoissonGaussian(1.5, 0.1), 20)], 1.001),
    (REPLACE, "rdp", [(Subsampled(Gaussian(sigma=1.5, sensitivity=2.0), rate=0.02), 100)], 1.6),
    (REPLACE, "rdp", [(Gaussian(sigma=0.1, sensitivity=0.3), 1)], 1.2),
    (REPLACE, "pld", [(Gaussian(sigma=0.3, sensitivity=0.1), 1)], 3.0),
]  # fmt: skip


@pytest.mark.parametrize(("relation", "kind", "rounds", "most"), LEDGERS, ids=str)
def test_events_that_go_out_are_no_less_private_here(relation: Any, kind: str, rounds: Any, most: float) -> None:
    """Whichever of the peer's accountants reads them: their readings of a noise multiplier differ for replacement."""
    plain = composed_of(rounds)
    peers = {"pld": pld_privacy_accountant.PLDAccountant, "rdp": rdp.RdpAccountant}
    event = to_event(plain)
    assert [part.count for part in event.events] == [count for _, count in rounds]
    theirs = peers[kind](neighboring_relation=relation).compose(event).get_epsilon(1e-5)
    lower, upper = plain.epsilon_bounds(1e-5)
    assert lower <= theirs <= most * upper
    back = ShufflePrivacyAccountant(relation).compose(event).get_epsilon(1e-5)
    assert lower <= back and (relation is REPLACE or back <= most * upper)


def test_noise_is_rounded_down() -> None:
    assert Fraction(to_event(Gaussian(sigma=0.1, sensitivity=0.3)).noise_multiplier) < Fraction(0.1) / Fraction(0.3)


def test_composition_of_events() -> None:
    """Nested compositions count as their parts; the ledger of events is the peer's."""
    event = shuffled(1.0, 500)
    inner = dp_event.ComposedDpEvent([GAUSSIAN(5.0), dp_event.SelfComposedDpEvent(event, 3)])
    nested = dp_event.SelfComposedDpEvent(inner, 2)
    found = ShufflePrivacyAccountant(rtol=1e-2).compose(nested).compose(dp_event.NoOpDpEvent())
    plain = Accountant(1e-2).compose(Gaussian(sigma=5.0, sensitivity=2.0), 2)
    plain.compose(ShuffledLDP(1.0, 500), 6)
    assert found.epsilon_bounds(1e-5) == plain.epsilon_bounds(1e-5)
    assert found.delta_bounds([0.1, 1.0]).upper.tolist() == plain.get_delta([0.1, 1.0]).tolist()
    # The peer's builder unrolls the outer repetition.
    assert found.ledger == dp_event.SelfComposedDpEvent(nested.event, 2)
    empty = dp_event.ComposedDpEvent([dp_event.SelfComposedDpEvent(event, 0)])
    assert ShufflePrivacyAccountant().compose(empty).get_epsilon(0.0) == 0.0


def test_non_private_events() -> None:
    """Infinite epsilon and delta 1 from then on, scalars and arrays; events that show nothing cost nothing."""
    response = dp_event.RandomizedResponseDpEvent
    without_noise = (dp_event.NonPrivateDpEvent(), GAUSSIAN(0.0), dp_event.LaplaceDpEvent(0), response(0.0, 3))
    for event in (*without_noise, POISSON(0.1, GAUSSIAN(0.0))):
        found = ShufflePrivacyAccountant().compose(event).compose(shuffled(1.0, 10))
        assert found.get_epsilon(0.5) == math.inf and found.get_delta(3.0) == 1.0
        assert found.epsilon_bounds([0.1, 0.2]).lower.tolist() == [math.inf, math.inf]
    for event in (response(0.0, 1), POISSON(0.0, GAUSSIAN(1.0)), FIXED(10, 0, GAUSSIAN(1.0))):
        assert ShufflePrivacyAccountant().compose(event).get_epsilon(0.0) == 0.0


LAPLACE = dp_event.LaplaceDpEvent(1.0)
UNSUPPORTED = [
    (REPLACE, dp_event.UnsupportedDpEvent(), "UnsupportedDpEvent"),
    (REPLACE, dp_event.ZCDpEvent(0.1), "REPLACE_ONE"),
    (REPLACE, GAUSSIAN(-1.0), "sigma"),
    (REPLACE, POISSON(0.1, LAPLACE), "GaussianDpEvent and shuffle events only"),
    (REPLACE, POISSON(0.1, FIXED(20, 10, shuffled(1.0, 10))), "shuffle events only"),
    (REPLACE, POISSON(0.1, MechanismEvent(Laplace(scale=2.0))), "shuffle events only"),
    (REPLACE, POISSON(1.5, GAUSSIAN(1.0)), "sampling_probability"),
    (REPLACE, FIXED(100, 20, shuffled(1.0, 10)), "n=10"),
    (REPLACE, FIXED(10, 20, shuffled(1.0, 20)), "sample_size"),
    (REPLACE, dp_event.SelfComposedDpEvent(shuffled(1.0, 10), -1), "count"),
    (REPLACE, MechanismEvent(ZeroOut(SMALL)), "relation"),
    (SPECIAL, POISSON(0.1, MechanismEvent(ZeroOut(SMALL))), "with known labels or laws .*, got ZeroOut"),
    (SPECIAL, POISSON(0.1, LAPLACE), "GaussianDpEvent and shuffle events only"),
    (SPECIAL, FIXED(10, 5, LAPLACE), "zero-out"),
    (SPECIAL, FIXED(100, 10, GAUSSIAN(2.0)), "zero-out"),
]  # fmt: skip


@pytest.mark.parametrize(("relation", "event", "reason"), UNSUPPORTED)
def test_unsupported_events_say_why_and_change_nothing(relation: Any, event: Any, reason: str) -> None:
    """Also inside of a composition whose first part is fine."""
    accountant = ShufflePrivacyAccountant(relation)
    whole = dp_event.ComposedDpEvent([shuffled(1.0, 10), event])
    assert not accountant.supports(whole)
    with pytest.raises(privacy_accountant.UnsupportedEventError, match=reason):
        accountant.compose(whole)
    assert accountant.get_epsilon(0.0) == 0.0 and accountant.ledger == dp_event.NoOpDpEvent()
    assert ShufflePrivacyAccountant().neighboring_relation is REPLACE


def test_zero_out_both_ways() -> None:
    """A distribution for REPLACE_SPECIAL goes into a zero-out ledger, a zero-out mechanism into theirs."""
    noise = peer.from_gaussian_mechanism(3.0, sampling_prob=0.1, neighboring_relation=Relation.REPLACE_SPECIAL)
    rounds = ZeroOut(ShuffledLDP(1.0, 1000))
    imported = from_dp_accounting(noise, Relation.REPLACE_SPECIAL)
    assert imported.relation == rounds.relation
    ours = Accountant().compose(imported, 5).compose(rounds, 5).get_epsilon(1e-5)
    theirs = noise.self_compose(5).compose(to_dp_accounting(rounds).self_compose(5))
    assert theirs.get_epsilon_for_delta(1e-5) <= ours * (1.0 + 1e-4)  # one order, or the worse of two
    with pytest.raises(ValueError, match="relation"):
        Accountant().compose(imported).compose(ShuffledLDP(1.0, 1000))


def test_events_are_values_and_survive_named_tuples() -> None:
    """Equality, hashing, the peer's serial form."""
    for event in (shuffled(1.0, 10), MechanismEvent(SMALL)):
        again = dp_event.DpEvent.from_named_tuple(event.to_named_tuple())
        assert again == event and hash(again) == hash(event)
    assert shuffled(1.0, 10) != shuffled(1.0, 11)
    both = DiscretePair(*LOGS)
    found = ShufflePrivacyAccountant().compose(MechanismEvent(both)).get_epsilon(0.01)
    assert found == Accountant().compose(both).get_epsilon(0.01)


def test_risks_of_the_adapter_are_those_of_the_accountant() -> None:
    """Also after composed events, whose ledger is an event and no list of pairs."""
    risk = AttackRisk(ShufflePrivacyAccountant().compose(shuffled(2.0, 100), 3))
    straight = AttackRisk(Accountant().compose(ShuffledLDP(eps0=2.0, n=100), 3))
    assert risk.true_positive_rate(0.1) == straight.true_positive_rate(0.1)
    assert risk.advantage() == straight.advantage()
    exposed = AttackRisk(ShufflePrivacyAccountant().compose(dp_event.NonPrivateDpEvent()))
    low, high = exposed.advantage()
    assert 1.0 - 1e-12 < low <= high == 1.0

"""Google's dp_accounting (0.4 or later): its distributions, its events, its accountant interface.

Neighbours are those of `NeighboringRelation.REPLACE_ONE`, or of REPLACE_SPECIAL: one user's record becomes the special,
zero record (`ZeroOut`). Under REPLACE_ONE a noise multiplier is noise over the *norm* of one contribution, and
replacing it moves a sum by twice that norm: `GaussianDpEvent(z)` is `Gaussian(sigma=z, sensitivity=2)`, as in
dp_accounting, and `LaplaceDpEvent(z)` is `Laplace(scale=z, sensitivity=2)`, also on several coordinates (splitting a
shift leaves less mass at the two extreme losses). Under REPLACE_SPECIAL the sensitivity is the norm itself.

What dp_accounting's own composition adds is described and measured in docs/interop.md.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

try:
    import attr  # comes with dp_accounting
    from dp_accounting import dp_event, privacy_accountant
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution
except ImportError as error:
    raise ImportError(
        "pld_shuffle.interop.dp_accounting needs dp_accounting 0.4 or later: pip install 'pld-shuffle[interop]'"
    ) from error

from ..accountant import Accountant
from ..composition.pld import PLD
from ..ledger import Ledger
from ..mechanisms import Mechanism, PoissonSampled, ShuffledRR, Subsampled, ZeroOut, as_mechanism
from ..mechanisms.central import Gaussian, Laplace, PoissonGaussian, quotient
from ..mechanisms.imported import ImportedPair
from ..numerics.sides import ROUNDOFF, Bounds, Side
from ..numerics.validation import choice, positive_float, positive_int, unit_interval
from . import symmetric

PrivacyLossDistribution = privacy_loss_distribution.PrivacyLossDistribution
NeighboringRelation = privacy_accountant.NeighboringRelation
ErrorDetails = privacy_accountant.PrivacyAccountant.CompositionErrorDetails

# Pessimistic distributions of dp_accounting have up to 1e-8 of mass too much (rounding of differences, cut
# at 0), after a thousand compositions 1e-5. Mass that is missing would be a mistake on the wrong side.
_EXCESS, _DEFICIT = 1e-3, 1e-9


def to_dp_accounting(mechanism: Mechanism, *, discretization: float = 1e-4, truncated_mass: float = 1e-18) -> Any:
    """A mechanism's upper law, on the grid of `discretization`, as a pessimistic `PrivacyLossDistribution`.

    mechanism : one with a symmetric pair. discretization : grid spacing in units of loss; must equal that of whatever
    it is composed with (the default is dp_accounting's). truncated_mass : P-mass per round that windows may leave out;
    it goes to infinite loss.

    Its delta is at least the mechanism's at every epsilon, and so is the delta of exact compositions; the
    pair is symmetric, so the relation "add" has the same distribution as "remove". Raises ValueError for an ordered
    pair or a grid as fine as rounding; MemoryError for a grid too fine to form; ArithmeticError if the masses are
    no distribution.

    >>> from pld_shuffle import ShuffledLDP
    >>> rounds = to_dp_accounting(ShuffledLDP(eps0=4.0, n=10_000)).self_compose(10)
    >>> round(rounds.get_epsilon_for_delta(1e-6), 3)
    1.385
    """
    step = positive_float("discretization", discretization)
    known = symmetric("mechanism", mechanism)
    return _exported(known.pld(step=step, side=Side.UPPER, truncated_mass=truncated_mass))


def _exported(law: PLD) -> Any:
    if not law.loss_error < law.step:
        raise ValueError(f"discretization must be above the rounding {law.loss_error!r} of losses, got {law.step!r}")
    # Losses may be too small by `loss_error`. Atoms that much higher are dominated by ones split onto the grid.
    share = math.expm1(-law.loss_error) / math.expm1(-law.step)
    masses = np.zeros(law.masses.size + 1)
    masses[:-1] = law.masses * (1.0 - share)
    masses[1:] += law.masses * share * (1.0 + 8.0 * ROUNDOFF)
    masses *= 1.0 + 8.0 * ROUNDOFF
    total = math.fsum(masses) + law.infinity
    if not 1.0 - _DEFICIT <= total <= 1.0 + _EXCESS:
        raise ArithmeticError(f"an upper law with mass {total!r}")
    pmf = pld_pmf.DensePLDPmf(law.step, law.low, masses, law.infinity, pessimistic_estimate=True)
    return PrivacyLossDistribution(pmf)


def from_dp_accounting(distribution: Any, neighboring_relation: Any) -> ImportedPair:
    """A `PrivacyLossDistribution` as a mechanism for `Accountant`.

    distribution : a pessimistic one, best of a single round: dp_accounting's composition adds the rounding of its
        transforms.
    neighboring_relation : the `NeighboringRelation` it was computed for (the distribution does not know). To
        be composed with shuffle mechanisms it must be REPLACE_ONE, or REPLACE_SPECIAL with those in `ZeroOut`.

    It states a pair that is at least as bad as the mechanism, so the *upper* ends of brackets carry over to the
    mechanism. If the orders "remove" and "add" differ, the larger profile counts. Mass that is missing (up to 1e-9 of
    rounding) is put at infinite loss. Raises TypeError for anything else; ValueError for a wrong mass, an optimistic
    distribution, and two orders under REPLACE_ONE.
    """
    if not isinstance(distribution, PrivacyLossDistribution):
        raise TypeError(f"distribution must be a PrivacyLossDistribution, got {distribution!r}")
    if not isinstance(neighboring_relation, NeighboringRelation):
        raise TypeError(f"neighboring_relation must be a NeighboringRelation, got {neighboring_relation!r}")
    neighbours = neighboring_relation.name.lower().replace("_", "-")
    try:
        orders = [distribution._pmf_remove]
        if not distribution._symmetric:
            orders.append(distribution._pmf_add)
        pairs = [_pair(pmf, neighbours) for pmf in orders]
    except AttributeError as error:  # there is no public way to read masses
        raise TypeError(
            f"distribution has another layout than dp_accounting 0.4 to 0.6, got {distribution!r}"
        ) from error
    if len(pairs) == 2 and neighbours == "replace-one":
        raise ValueError(
            "neighboring_relation must be one with two orders, as the distribution has two,"
            f" got {neighboring_relation!r}"
        )
    found = replace(pairs[0], reverse=pairs[1]) if len(pairs) == 2 else pairs[0]
    _check_reading(distribution, found)
    return found


def _pair(pmf: Any, neighbours: str) -> ImportedPair:
    """The positive part of a `PLDPmf`, checked."""
    pmf = pmf.to_dense_pmf()
    if not pmf._pessimistic_estimate:
        raise ValueError("distribution must be pessimistic, got an optimistic one")
    step, low, infinity = (float(pmf._discretization), int(pmf._lower_loss), float(pmf._infinity_mass))
    masses = np.asarray(pmf._probs, np.float64)
    negative = -float(np.minimum(masses, 0.0).sum())
    total = math.fsum(masses) + infinity
    if not (np.all(np.isfinite(masses)) and 0.0 <= infinity <= 1.0 and negative <= _DEFICIT):
        raise ValueError(f"distribution has no masses but {masses!r} with {infinity!r} at infinite loss")
    if not 1.0 - _DEFICIT <= total <= 1.0 + _EXCESS:
        raise ValueError(f"distribution must have mass 1, got {total!r}")
    # Transforms leave negative noise; without it there is only more mass.
    infinity = min(1.0, infinity + max(0.0, 1.0 - total))
    masses = np.maximum(masses, 0.0)[max(0, 1 - low) :]
    return ImportedPair(step, max(1, low), tuple(masses.tolist()), infinity, neighbours)


def _check_reading(distribution: Any, found: ImportedPair) -> None:
    """What was read gives the deltas that the distribution's own public method gives."""
    asked = np.array([0.0, 0.3, 1.0, 2.0, 4.0, 8.0]) * found.pair.scale
    ours = found.pair.profile(np.expm1(asked), 1e-9, 0.0)
    for eps, low, high in zip(asked.tolist(), ours.lower, ours.upper, strict=True):
        theirs = float(distribution.get_delta_for_epsilon(eps))
        if not low * (1.0 - 1e-6) - 2e-9 <= theirs <= high * (1.0 + 1e-6) + 2e-9:
            raise ValueError(
                f"distribution was misread: delta({eps!r}) = {theirs!r} by its own method,"
                f" {float(high)!r} from the masses read"
            )


@attr.s(frozen=True, slots=True, auto_attribs=True)
class MechanismEvent(dp_event.DpEvent):  # type: ignore[misc]
    """One round of a mechanism of this package, for neighbours that differ in one user's value; or a `ZeroOut`.

    The sensitivity of a central mechanism must be meant for that relation. ValueError for an ordered pair.
    """

    mechanism: Mechanism

    def __attrs_post_init__(self) -> None:
        mechanism = symmetric("mechanism", self.mechanism)
        choice("mechanism.relation", mechanism.relation, ("replace-one", "zero-out"))


class ShufflePrivacyAccountant(privacy_accountant.PrivacyAccountant):  # type: ignore[misc]
    """A `PrivacyAccountant` for shuffle and central events, with certified answers from `Accountant`.

    neighboring_relation : REPLACE_ONE, or REPLACE_SPECIAL (zero-out: see `ZeroOut` for what null reports must be).
    rtol : as for `Accountant`: wanted relative width of brackets on delta.

    Supported: `MechanismEvent`, `GaussianDpEvent`, `LaplaceDpEvent`, `RandomizedResponseDpEvent` (one user's report,
    seen by the adversary), `SampledWithoutReplacementDpEvent` of one of these, `PoissonSampledDpEvent` of a
    `GaussianDpEvent` or of the `MechanismEvent` of a shuffle whose n counts all users who may take part,
    `ComposedDpEvent`, `SelfComposedDpEvent`, `NoOpDpEvent`, `NonPrivateDpEvent`. Anything else, and any event with
    impossible parameters, is an `UnsupportedEventError` that says why.

    No answer rests on a distribution of dp_accounting's, unless a `MechanismEvent` holds an imported one.

    >>> from pld_shuffle import ShuffledLDP
    >>> round_event = MechanismEvent(ShuffledLDP(eps0=4.0, n=10_000))
    >>> accountant = ShufflePrivacyAccountant().compose(round_event, 10)
    >>> round(accountant.get_epsilon(1e-6), 3)
    1.385
    """

    def __init__(self, neighboring_relation: Any = NeighboringRelation.REPLACE_ONE, *, rtol: float = 1e-3) -> None:
        if neighboring_relation not in (NeighboringRelation.REPLACE_ONE, NeighboringRelation.REPLACE_SPECIAL):
            raise ValueError(
                "neighboring_relation must be REPLACE_ONE, the relation of shuffle pairs, or REPLACE_SPECIAL,"
                f" got {neighboring_relation!r}"
            )
        super().__init__(neighboring_relation)
        self._accountant = Accountant(rtol)

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        if isinstance(event, dp_event.SelfComposedDpEvent):
            try:
                repeats = positive_int("count", event.count, least=0)
            except (TypeError, ValueError) as error:
                return ErrorDetails(invalid_event=event, error_message=str(error))
            return self._maybe_compose(event.event, repeats * count, do_compose) if repeats else None
        if isinstance(event, dp_event.ComposedDpEvent):
            failures = (self._maybe_compose(part, count, do_compose) for part in event.events)
            return next((failed for failed in failures if failed is not None), None)
        try:
            found = self._read(event)
        except (TypeError, ValueError) as error:
            return ErrorDetails(invalid_event=event, error_message=str(error))
        if do_compose and found is not None:
            self._accountant.compose(found, count)
        return None

    def _read(self, event: Any) -> Mechanism | None:
        """The event's mechanism, for this accountant's relation, or nothing; ValueError or TypeError if unknown."""
        zero_out = self.neighboring_relation is NeighboringRelation.REPLACE_SPECIAL
        found = _mechanism(event, reach=1.0 if zero_out else 2.0)
        if zero_out:
            return found if found is None or found.relation == "zero-out" else ZeroOut(found)
        if found is not None:
            choice("mechanism.relation", found.relation, ("replace-one",))
        return found

    def get_epsilon(self, target_delta: float) -> float:
        """Certified upper bound on epsilon."""
        return self._accountant.get_epsilon(target_delta)

    def get_delta(self, target_epsilon: float) -> float:
        """Certified upper bound on delta at `target_epsilon`."""
        return self._accountant.get_delta(target_epsilon)

    def epsilon_bounds(self, target_delta: Any) -> Bounds:
        """As `Accountant.epsilon_bounds`."""
        return self._accountant.epsilon_bounds(target_delta)

    def delta_bounds(self, target_epsilon: Any) -> Bounds:
        """As `Accountant.delta_bounds`."""
        return self._accountant.delta_bounds(target_epsilon)


def _mechanism(event: Any, reach: float) -> Mechanism | None:
    """The mechanism of a basic or sampled event, None if it shows nothing; ValueError or TypeError if unknown.

    reach : how far a user moves a sum, in norms of a contribution: 2 by replacing it, 1 by leaving it out.
    """
    match event:
        case (
            dp_event.NoOpDpEvent()
            | dp_event.RandomizedResponseDpEvent(num_buckets=1)
            | dp_event.SampledWithoutReplacementDpEvent(sample_size=0)
            | dp_event.PoissonSampledDpEvent(sampling_probability=0, event=dp_event.GaussianDpEvent())
        ):
            return None
        case (
            dp_event.NonPrivateDpEvent()
            | dp_event.GaussianDpEvent(noise_multiplier=0)
            | dp_event.LaplaceDpEvent(noise_multiplier=0)
            | dp_event.RandomizedResponseDpEvent(noise_parameter=0)
            | dp_event.PoissonSampledDpEvent(event=dp_event.GaussianDpEvent(noise_multiplier=0))
        ):
            return ImportedPair(1.0, 1, (), 1.0, "replace-one" if reach == 2.0 else "replace-special")
        case MechanismEvent():
            return event.mechanism  # type: ignore[no-any-return]
        case dp_event.GaussianDpEvent():
            return Gaussian(sigma=event.noise_multiplier, sensitivity=reach)
        case dp_event.LaplaceDpEvent():
            return Laplace(scale=event.noise_multiplier, sensitivity=reach)
        case dp_event.RandomizedResponseDpEvent(noise_parameter=gamma, num_buckets=k):
            # Among n = 1 users, the adversary who sees the shuffled reports sees the report.
            return ShuffledRR(k=k, n=1, gamma=gamma, adversary="weak")
        case dp_event.SampledWithoutReplacementDpEvent():
            return _fixed_cohort(event, _mechanism(event.event, reach))
        case dp_event.PoissonSampledDpEvent():
            return _poisson(event.event, event.sampling_probability)
    raise ValueError(f"no pair for {type(event).__name__} under REPLACE_ONE or REPLACE_SPECIAL")


def _fixed_cohort(event: Any, whole: Mechanism | None) -> Mechanism | None:
    size, population = event.sample_size, event.source_dataset_size
    if not 0 < size <= population:
        raise ValueError(f"sample_size must be in [0, {population!r}], got {size!r}")
    if whole is None:
        return None
    if whole.users is None:
        return Subsampled(whole, rate=size / population)
    if whole.users != size:
        raise ValueError(f"sample_size must be the mechanism's n={whole.users}, got {size!r}")
    return Subsampled(whole, population=population)


def _poisson(inner: Any, probability: float) -> Mechanism | None:
    """Every user takes part independently: in a Gaussian sum, or in a shuffle whose n counts all who may take part."""
    rate = None if probability == 0 else unit_interval("sampling_probability", probability)
    if isinstance(inner, dp_event.GaussianDpEvent) and rate is not None:
        return PoissonGaussian(sigma=inner.noise_multiplier, rate=rate)
    if not isinstance(inner, MechanismEvent) or inner.mechanism.users is None:
        raise ValueError(
            "Poisson sampling under REPLACE_ONE is known for GaussianDpEvent and shuffle events only, got"
            f" {type(inner).__name__}"
        )
    return None if rate is None else PoissonSampled(inner.mechanism, rate)


def to_event(composed: Mechanism | Ledger) -> Any:
    """A central mechanism as dp_accounting's event; an accountant as the `ComposedDpEvent` of its rounds.

    composed : `Gaussian`, `Laplace` or `PoissonGaussian`, also in `ZeroOut`; noise on a cohort of fixed size
        (`Subsampled`); or an accountant of such. Ask under REPLACE_ONE, in `ZeroOut` under REPLACE_SPECIAL or
        ADD_OR_REMOVE_ONE.

    Under REPLACE_ONE dp_accounting's `RdpAccountant` takes a noise multiplier over what a *replacement* moves, its
    `PLDAccountant` (and this package's) over one contribution's norm. The multiplier here is sigma/sensitivity, the
    smaller of the two: right in the first, too large an epsilon in the second. Noise is never rounded up, nor a rate
    down: a rate is a cohort of m users out of 2^k with rate = m/2^k. Raises ValueError for what dp_accounting has no
    event for, TypeError for what is no mechanism.

    >>> from pld_shuffle import from_training
    >>> to_event(from_training(1000, 500, 3, 1.5, sampler="poisson")).events[0].count
    6
    """
    if isinstance(composed, Ledger):
        rounds = [dp_event.SelfComposedDpEvent(to_event(held), count) for held, count in composed.ledger]
        return dp_event.ComposedDpEvent(rounds)
    mechanism = as_mechanism(composed)
    match mechanism.mechanism if isinstance(mechanism, ZeroOut) else mechanism:
        case Gaussian(sigma=noise, sensitivity=reach):
            return dp_event.GaussianDpEvent(quotient(noise, reach).lower)
        case Laplace(scale=noise, sensitivity=reach):
            return dp_event.LaplaceDpEvent(quotient(noise, reach).lower)
        case PoissonGaussian(sigma=noise, rate=rate, norm=norm):  # no RdpAccountant for replacement
            return dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(quotient(noise, norm).lower))
        case Subsampled(mechanism=Gaussian() | Laplace() as whole, rate=rate):
            size, population = rate.as_integer_ratio()
            return dp_event.SampledWithoutReplacementDpEvent(population, size, to_event(whole))
    raise ValueError(
        f"composed must be what dp_accounting has an event for, got {composed!r}; `to_dp_accounting` makes a"
        " distribution, and `MechanismEvent` an event for this package's accountant"
    )


__all__ = ["MechanismEvent", "ShufflePrivacyAccountant", "from_dp_accounting", "to_dp_accounting", "to_event"]

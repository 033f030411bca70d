"""Training runs by their configuration, and the command that accounts for them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import laplace, norm

from pld_shuffle import (
    Accountant,
    Gaussian,
    Laplace,
    PoissonGaussian,
    RandomAllocation,
    ShuffledBatches,
    Subsampled,
    ZeroOut,
    cli,
)
from pld_shuffle.training import SAMPLERS, Training, from_training


def run(sampler: str, *, batch: int = 99, drop_last: bool = True) -> Training:
    return Training(1000, batch, 3, 1.5, sampler, drop_last)


def test_what_every_sampler_is_accounted_as() -> None:
    assert run("shuffle").rounds == (ShuffledBatches(1.5, 10, 99, 1000), 3)
    assert run("shuffle").rounds[0].left_out == 10
    assert run("balls-and-bins").rounds == (RandomAllocation(Gaussian(sigma=1.5), 10), 3)
    assert run("cyclic").rounds == (ZeroOut(Gaussian(sigma=1.5)), 3)
    mechanism, count = run("poisson").rounds
    assert isinstance(mechanism.mechanism, PoissonGaussian) and count == 30
    assert mechanism.mechanism.rate >= 0.099
    mechanism, count = run("fixed-size").rounds
    assert mechanism.mechanism == Gaussian(sigma=1.5, sensitivity=2.0) and count == 30
    assert mechanism.rate >= 0.099 and mechanism.relation == "replace-one"
    assert {run(sampler).claimed for sampler in SAMPLERS} == {run("poisson")}


def test_a_smaller_last_batch_leaves_nobody_out() -> None:
    kept = run("shuffle", drop_last=False)
    mechanism, _ = kept.rounds
    assert kept.steps == 11 and mechanism.left_out == 0
    ends = [Accountant().compose(one).get_epsilon(1e-5) for one in (mechanism, Gaussian(sigma=1.5))]
    assert ends[0] < 0.98 * ends[1]
    assert run("shuffle", batch=100, drop_last=False).rounds == run("shuffle", batch=100).rounds


@pytest.mark.parametrize("noise", [Gaussian(sigma=0.8), Laplace(scale=0.5)])
@pytest.mark.parametrize("eps", [0.05, 0.3])
def test_noise_on_a_hidden_cohort_is_attacked_by_two_datasets(noise: Gaussian | Laplace, eps: float) -> None:
    """Two rounds with all others at 0 and the target at 0 or at 1, by summing densities of both outputs."""
    law = norm(scale=0.8) if isinstance(noise, Gaussian) else laplace(scale=0.5)
    edges = np.linspace(-12.0, 13.0, 3001)
    without = np.diff(law.cdf(edges))
    taken = 0.7 * without + 0.3 * np.diff(law.cdf(edges - 1.0))
    laws = [np.outer(one, one) for one in (taken, without)]
    truth = max(np.maximum(p - np.exp(eps) * q, 0.0).sum() for p, q in (laws, laws[::-1]))
    found = Accountant(rtol=1e-5).compose(Subsampled(noise, rate=0.3), 2).delta_bounds(eps)
    assert found.lower == pytest.approx(truth, rel=1e-4)
    assert found.upper >= truth


def test_samplers_are_ordered() -> None:
    """Knowing more costs more; and what Poisson would claim is far below what shuffling spends."""
    found = {
        sampler: from_training(10_001, 100, 1, 2.0, sampler=sampler).epsilon_bounds(1e-5)
        for sampler in ("balls-and-bins", "shuffle", "cyclic", "poisson")
    }
    assert found["balls-and-bins"].upper < found["shuffle"].lower
    assert found["shuffle"].upper < found["cyclic"].lower
    assert 2.0 * found["poisson"].upper < found["shuffle"].lower


def test_the_command_prints_bound_attack_and_claim(capsys: pytest.CaptureFixture[str]) -> None:
    given = "--n 10001 --batch 100 --epochs 1 --sigma 2 --sampler shuffle --delta 1e-5".split()  # noqa: SIM905
    assert cli.main(["train", *given, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    [row], [claim] = found["epsilon_bounds"], found["poisson_claim"]
    accountant = Accountant().compose(ShuffledBatches(2.0, 100, 100, 10_001))
    assert [row["lower"], row["upper"]] == list(accountant.epsilon_bounds(1e-5))
    assert claim["upper"] < row["lower"] < row["upper"]
    assert cli.main(["train", *given]) == 0
    assert "Poisson sampling would have had" in capsys.readouterr().out
    assert cli.main(["train", *given, "--sampler", "ordered"]) == 2

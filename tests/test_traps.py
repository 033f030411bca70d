"""Values that are allowed and probably not what was meant, and what is said of them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pld_shuffle import (
    Accountant,
    Gaussian,
    PoissonSampled,
    RenyiAccountant,
    ShuffledLDP,
    Subsampled,
    UnlikelyWarning,
    solve,
)
from pld_shuffle.cli import main
from pld_shuffle.fields import mechanism_from_values, values_of
from pld_shuffle.trainlog import LogError, training_log

ROUND = ShuffledLDP(eps0=1.0, n=1000)
COHORT = Subsampled(ROUND, population=10**6)


def said(ask: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UnlikelyWarning)
        ask()
    return [str(warning.message) for warning in caught]


def accountant(mechanism: Any = ROUND, maker: Any = Accountant) -> Any:
    return maker().compose(mechanism, 2)


@pytest.mark.parametrize(("ask", "text"), [
    (lambda: Accountant().get_epsilon(1e-6), "nothing has been composed"),
    (lambda: Accountant().delta_bounds(1.0), "nothing has been composed"),
    (lambda: RenyiAccountant().get_epsilon(1e-6), "nothing has been composed"),
    (lambda: accountant().get_epsilon(1), "every epsilon holds at delta=1"),
    (lambda: accountant(maker=RenyiAccountant).get_epsilon(1.0), "every epsilon holds"),
    (lambda: accountant().epsilon_bounds(1e-3), "delta=0.001 is at least 1/n with n=1,000"),
    (lambda: accountant(COHORT).gap_bounds([0.5, 0.9]), "delta=0.5 is at least 1/n"),
    (lambda: accountant(Gaussian(sigma=2.0)).get_epsilon(0.5), "delta=0.5 is large"),
    (lambda: accountant().get_delta(1e-6), "epsilon=1e-06 is small; was a delta meant?"),
    (lambda: Subsampled(ROUND, rate=1), "one per cent is rate=0.01"),
    (lambda: PoissonSampled(ROUND, 1), "one per cent is rate=0.01"),
    (lambda: mechanism_from_values({"n": 1000, "eps0": 1.0, "rate": 1, "sampling": "poisson"}), "one per cent"),
    (lambda: mechanism_from_values({"n": 1000, "eps0": 1.0, "rate": 1}), "one per cent"),
])  # fmt: skip
def test_a_question_that_was_hardly_meant(ask: Callable[[], Any], text: str) -> None:
    found = said(ask)
    assert len(found) == 1 and text in found[0]


@pytest.mark.parametrize(
    "ask",
    [
        lambda: accountant().get_epsilon(9e-4),
        lambda: accountant().get_epsilon([1e-6, 0.5]),  # a curve
        lambda: accountant(COHORT).epsilon_bounds(1e-4),
        lambda: accountant(Gaussian(sigma=2.0)).get_epsilon(0.05),
        lambda: accountant().get_delta(0.1),
        lambda: accountant().get_delta(0.0),
        lambda: Subsampled(ROUND, rate=1.0, dropout=0.1),
        lambda: Subsampled(ROUND, population=1000),
        lambda: solve("rate", {"n": 1000, "eps0": 1.0}, epsilon=1, delta=1e-6),  # a rate of 1 is the answer
    ],
)
def test_ordinary_questions_are_answered_in_silence(ask: Callable[[], Any]) -> None:
    assert said(ask) == []


@pytest.mark.parametrize(("flags", "text"), [
    ("--eps0 1 --n 100 --delta 1", "every epsilon holds"),
    ("--eps0 1 --n 100 --delta 0.5", "at least 1/n"),
    ("--eps0 1 --n 100 --rate 1 --delta 1e-6", "one per cent"),
])  # fmt: skip
def test_the_command_line_says_it_in_one_line(flags: str, text: str, capsys: Any) -> None:
    assert main(["epsilon", *flags.split(), "--json"]) == 0
    out, err = capsys.readouterr()
    [remark] = json.loads(out)["warnings"]
    assert text in remark and err == f"pld-shuffle: warning: {remark}\n"


def test_numbers_are_accepted_in_the_same_forms_everywhere() -> None:
    """1e6 and 10**6 are one number, as an argument, in a plan and in a log; grouped digits are none anywhere."""
    truth = ShuffledLDP(eps0=1.0, n=10**6)
    forms: list[Any] = [1e6, 1_000_000, np.int64(10**6), np.float64(1e6)]
    for n in forms:
        assert ShuffledLDP(eps0=1.0, n=n) == truth
    for n in [*forms, "1e6", "1000000.0"]:
        assert mechanism_from_values(values_of({"n": n, "eps0": 1}, ("n", "eps0"))) == truth
        assert training_log([{"n": n, "eps0": 1}]).rounds == ((truth, 1),)
    for bad in ("1_000_000", "1,000,000", "1 000 000"):
        with pytest.raises(LogError, match="digits are not grouped"):
            training_log([{"n": bad, "eps0": 1}])

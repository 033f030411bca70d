"""Every report of a finite randomizer and its mass under every input, written down from the definitions.

This is the oracle of the closed forms, the joint laws and the samples; it shares nothing with them but the
constructor's arguments and, for RAPPOR, the public filters. With a rational `root` = e^(eps0/2) all is exact.
"""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import Any

import numpy as np

from pld_shuffle.randomizers import (
    RAPPOR,
    BinaryRandomizedResponse,
    DiscreteRandomizer,
    HadamardResponse,
    KRandomizedResponse,
    LocalHashing,
    SubsetSelection,
    UnaryEncoding,
)


@cache
def enumerated(one: Any, root: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """(reports as `sample` returns them, masses of shape (inputs, reports) as Python numbers)."""
    root = math.exp(one.eps0 / 2) if root is None else root
    odds, k = root * root, one.inputs
    if isinstance(one, DiscreteRandomizer):
        return np.arange(len(one.matrix[0])), np.array(one.matrix, dtype=object)
    if isinstance(one, UnaryEncoding | RAPPOR):
        if isinstance(one, RAPPOR):
            f, p, q = map(type(root), (one.noise, one.one_if_zero, one.one_if_one))
            high, low = (1 - f / 2) * q + f / 2 * p, f / 2 * q + (1 - f / 2) * p
            filters = one.encode(np.arange(k))
        else:
            high, low = root / (1 + root), 1 / (1 + root)
            if one.variant == "optimised":
                high, low = type(root)(1) / 2, 1 / (1 + odds)
            filters = np.eye(k, dtype=int)
        reports = np.array(list(itertools.product((0, 1), repeat=filters.shape[1])))
        chance = np.where(filters == 1, high, low)[:, np.newaxis]
        return reports, np.prod(np.where(reports == 1, chance, 1 - chance), axis=2)
    if isinstance(one, KRandomizedResponse | BinaryRandomizedResponse):
        reports = np.arange(k)
        favoured = reports == reports[:, np.newaxis]
    elif isinstance(one, SubsetSelection):
        sets = list(itertools.combinations(range(k), one.size))
        reports = np.array([[x in chosen for x in range(k)] for chosen in sets], dtype=int)
        favoured = reports.T == 1
    elif isinstance(one, LocalHashing):
        prime = max(k, one.buckets)
        while any(prime % i == 0 for i in range(2, prime)):
            prime += 1
        reports = np.array(list(itertools.product(*[range(prime)] * 4, range(one.buckets))))
        powers = np.arange(k)[:, np.newaxis] ** np.array([3, 2, 1, 0])
        favoured = powers @ reports[:, :4].T % prime % one.buckets == reports[:, 4]
    else:
        assert isinstance(one, HadamardResponse)
        sylvester = np.array([[1]])
        while len(sylvester) < k + 1:
            sylvester = np.kron([[1, 1], [1, -1]], sylvester)
        reports = np.arange(len(sylvester))
        favoured = sylvester[1 : k + 1] == 1
    weights = np.where(favoured, odds, odds / odds)
    return reports, weights / weights.sum(axis=1, keepdims=True)


def law_of(one: Any) -> np.ndarray:
    """The masses as floats, shape (inputs, reports)."""
    return enumerated(one)[1].astype(float)


def counted(one: Any, reports: np.ndarray) -> np.ndarray:
    """How often each of the enumerated reports occurs among `reports`; KeyError for any other."""
    known = enumerated(one)[0]
    place = {tuple(np.atleast_1d(report).tolist()): i for i, report in enumerate(known)}
    seen, times = np.unique(reports.reshape(len(reports), -1), axis=0, return_counts=True)
    counts = np.zeros(len(known), dtype=int)
    for report, often in zip(seen.tolist(), times, strict=True):
        counts[place[tuple(report)]] = often
    return counts


def infimum(one: Any) -> np.ndarray:
    """inf_x of the masses."""
    return law_of(one).min(axis=0)

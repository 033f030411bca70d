"""An entry for a registry of deployments of differential privacy: what is known of it from the ledger.

Registries ask for more than epsilon: unit of privacy, relation of neighbours, whom one has to trust, how rounds were
composed, what is assumed (Dwork, Kohli, Mulligan 2019; Nanayakkara, Ghazi, Vadhan, arXiv 2509.13509). An entry here has
the keys and words of that paper's public registry, opendp/deployments-registry-data as of July 2026. What the ledger
knows is filled in; what only the curator can know has the value None, as in ``data/registry_entry.json``, and the entry
is valid there when all of it is known. Upper ends are certified; nothing else in an entry is a number.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import __version__
from .report import assumptions_of

if TYPE_CHECKING:
    from .accountant import Accountant

BLANK = Path(__file__).parent / "data" / "registry_entry.json"
RELATIONS = {
    "replace-one": "neighbouring datasets differ in the data of one user, which are replaced",
    "zero-out": "one user's contributions are replaced by nothing",
}
TRUST = {
    "Shuffle": "users randomize their reports themselves; the shuffler is trusted not to tell who sent which",
    "Central": "the curator sees the raw data, and is trusted to add the noise",
}


def registry_entry(accountant: Accountant, delta: float) -> dict[str, Any]:
    """The entry for everything in the accountant's ledger, at `delta`; plain data, ready for JSON or YAML.

    Raises ValueError for an empty ledger and where no epsilon is finite, else as `Accountant.get_epsilon`.

    >>> from pld_shuffle import Accountant, ShuffledLDP
    >>> acc = Accountant().compose(ShuffledLDP(eps0=4.0, n=10_000), 10)
    >>> entry = registry_entry(acc, 1e-6)["deployment"]
    >>> entry["dp_variant"]["variant_name"], entry["deployment_model"]["model_name"]
    ('Approximate DP', 'Shuffle')
    """
    rounds, epsilon = accountant.ledger, accountant.get_epsilon(delta)
    if not (rounds and epsilon < math.inf):
        raise ValueError(f"an entry needs a ledger with rounds and a finite epsilon, got {epsilon!r} of {accountant!r}")
    models = [name for name in TRUST if any((name == "Central") == (held.users is None) for held, _ in rounds)]
    assumed, total, relation = assumptions_of(rounds), accountant.rounds, rounds[0][0].relation
    known = {
        "dp_variant": {"variant_name": "Approximate DP" if delta > 0.0 else "Pure DP"},
        "privacy_loss": {
            "privacy_unit_details": f"One user, over all rounds: {RELATIONS.get(relation, relation)}.",
            "privacy_parameters": {"epsilon": epsilon, "delta": float(delta)},
            "privacy_parameters_details": "epsilon is a certified upper bound at delta; what it rests on: "
            + _sentences(assumed),
        },
        "deployment_model": {
            "model_name": models[0] if len(models) == 1 else "Varies",
            "model_name_details": "; ".join(f"{name}: {TRUST[name]}" for name in models) + ".",
            "actors": _sentences({"adversary": assumed["adversary"]}),
            "release_type": "One release" if total == 1 else "Many releases",
            "release_type_details": f"{total} rounds, accounted together",
        },
        "accounting": {
            "composition": f"Adaptive composition of {total} rounds whose parameters are fixed independently of the"
            f" data: products of dominating pairs, certified upper bound (pld_shuffle {__version__}).",
        },
        "implementation": {"mechanisms": "\n".join(f"- {count:,} x {mechanism!r}" for mechanism, count in rounds)},
    }
    entry: dict[str, Any] = json.loads(BLANK.read_text(encoding="utf-8"))
    for section, values in known.items():
        entry["deployment"][section] |= values
    return entry


def _sentences(assumed: dict[str, list[str]]) -> str:
    return "; ".join(f"{topic}: {text}" for topic, texts in assumed.items() for text in texts) + "."

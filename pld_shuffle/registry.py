"""An entry for a registry of deployments of differential privacy: what is known of it from the ledger.

Registries ask for more than epsilon: unit of privacy, relation of neighbours, whom one has to trust, how rounds were
composed, what is assumed (Dwork, Kohli, Mulligan 2019; the schema is that of Nanayakkara, Ghazi, Vadhan, arXiv
2509.13509, and its public registry). ``data/registry_entry.json`` is an entry with the keys of that schema; what the
ledger knows is filled in here, and what only the curator can know has the value None. Upper ends are certified; nothing
else in an entry is a number.
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
    "replace-one": ("neighbouring datasets differ in the data of one user, which are replaced", "Hamming distance"),
    "zero-out": ("one user's contributions are replaced by nothing", "distance by zeroed-out users"),
}
TRUST = {
    "Shuffle": "users randomize their reports themselves; the shuffler is trusted not to tell who sent which",
    "Central": "the curator sees the raw data, and is trusted to add the noise",
}


def registry_entry(accountant: Accountant, delta: float) -> dict[str, Any]:
    """The entry for everything in the accountant's ledger, at `delta`; plain data, ready for JSON or YAML.

    Raises ValueError for an empty ledger, else as `Accountant.get_epsilon`.

    >>> from pld_shuffle import Accountant, ShuffledLDP
    >>> acc = Accountant().compose(ShuffledLDP(eps0=4.0, n=10_000), 10)
    >>> entry = registry_entry(acc, 1e-6)["deployment"]
    >>> entry["dp_flavor"]["name"], entry["model"]["model_name"]
    ('Approximate DP', 'Shuffle')
    """
    rounds = accountant.ledger
    if not rounds:
        raise ValueError(f"an entry needs a ledger with rounds, got {accountant!r}")
    kinds = {"Central" if mechanism.users is None else "Shuffle" for mechanism, _ in rounds}
    models = [name for name in TRUST if name in kinds]
    relation = rounds[0][0].relation
    described, metric = RELATIONS.get(relation, (relation, relation))
    assumed, total, epsilon = assumptions_of(rounds), accountant.rounds, accountant.get_epsilon(delta)
    known = {
        "dp_flavor": {"name": "Approximate DP" if delta > 0.0 else "Pure DP", "input_metric": metric},
        "privacy_loss": {
            "privacy_unit_description": f"One user, over all rounds: {described}.",
            "privacy_parameters": {"epsilon": epsilon if epsilon < math.inf else "inf", "delta": float(delta)},
            "privacy_parameters_description": "epsilon is a certified upper bound at delta; what it rests on: "
            + _sentences(assumed),
        },
        "model": {
            "model_name": " and ".join(models),
            "model_name_description": "; ".join(TRUST[name] for name in models) + ".",
            "actors": _sentences({"adversary": assumed["adversary"]}),
            "release_type": "One release" if total == 1 else "Many releases",
            "release_type_description": f"{total} rounds, accounted together",
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

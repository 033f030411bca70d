"""An entry for a registry of deployments of differential privacy: what is known of it from the ledger.

Registries ask for more than epsilon: unit of privacy, relation of neighbours, whom one has to trust, how rounds were
composed, what is assumed (Dwork, Kohli, Mulligan 2019; the schema is that of Nanayakkara, Ghazi, Vadhan, arXiv
2509.13509, and its public registry). An entry has the keys of that schema. What only the curator can know is there
with the value None. Upper ends are certified; nothing else in an entry is a number.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from . import __version__
from .report import assumptions_of

if TYPE_CHECKING:
    from .accountant import Accountant

RELATIONS = {
    "replace-one": ("neighbouring datasets differ in the data of one user, which are replaced", "Hamming distance"),
    "zero-out": ("one user's contributions are replaced by nothing", "distance by zeroed-out users"),
}  # fmt: skip
SHUFFLE = "users randomize their reports themselves; the shuffler is trusted not to tell who sent which"
CENTRAL = "the curator sees the raw data, and is trusted to add the noise"


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
    mechanisms = [mechanism for mechanism, _ in rounds]
    shuffled = {mechanism.users is not None for mechanism in mechanisms}
    models = [name for name, is_used in (("Shuffle", True), ("Central", False)) if is_used in shuffled]
    relation = mechanisms[0].relation
    described, metric = RELATIONS.get(relation, (relation, relation))
    assumed = assumptions_of(rounds)
    epsilon = accountant.get_epsilon(delta)
    return {
        "status": "Draft",
        "tier": None,
        "deployment": {
            "product": dict.fromkeys(
                ("name", "data_curators", "intended_use", "data_product_type", "data_product_region",
                 "data_product_sector", "description", "publication_date")
            ),
            "dp_flavor": {
                "name": "Approximate DP" if delta > 0.0 else "Pure DP",
                "input_metric": metric,
                "bound_on_input_distance": 1,
                "output_measure": "hockey-stick divergence",
                "data_domain": None,
                "unprotected_quantities": "numbers of users and of reports, and all parameters of the rounds",
            },
            "privacy_loss": {
                "privacy_unit": "User-level",
                "privacy_unit_description": f"One user, over all rounds: {described}.",
                "privacy_parameters": {"epsilon": epsilon if epsilon < math.inf else "inf", "delta": float(delta)},
                "privacy_parameters_description": "epsilon is a certified upper bound at delta; what it rests on: "
                + _sentences(assumed),
            },
            "model": {
                "model_name": " and ".join(models),
                "model_name_description": "; ".join(
                    text for name, text in (("Shuffle", SHUFFLE), ("Central", CENTRAL)) if name in models
                ) + ".",
                "actors": _sentences({"adversary": assumed["adversary"]}),
                "release_type": "One release" if accountant.rounds == 1 else "Many releases",
                "release_type_description": f"{accountant.rounds} rounds, accounted together",
                "access_type": None,
            },
            "accounting": {
                "post_processing": None,
                "composition": f"Adaptive composition of {accountant.rounds} rounds whose parameters are fixed"
                " independently of the data: products of dominating pairs, certified upper bound"
                f" (pld_shuffle {__version__}).",
            },
            "implementation": {
                "pre_processing_eda_hyperparameter_tuning": None,
                "mechanisms": "\n".join(f"- {count:,} x {mechanism!r}" for mechanism, count in rounds),
                "justification": None,
            },
            "resources": {"sources": None, "registry_authors": None},
        },
    }  # fmt: skip


def _sentences(assumed: dict[str, list[str]]) -> str:
    return "; ".join(f"{topic}: {text}" for topic, texts in assumed.items() for text in texts) + "."

"""Fields: every value that describes what was run, declared once, with its type.

A column of a training log, a flag of the command line, a parameter of `solve` and a column of `sweep` are the same
thing under one name, a `Field`. A `Kind` says which fields describe a mechanism (or a local randomizer in a shuffler),
and the names are those of its constructor. To offer a new parameter, add a `Field`; to offer a new mechanism, add a
`Kind`.

Texts become numbers at the border and only there (`Field.value`). Nothing heavy is imported before a mechanism is
built.
"""

from __future__ import annotations

import csv
import difflib
import importlib
import math
import numbers
import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from .storage import parse_integer, parse_number, quoted

if TYPE_CHECKING:
    from .mechanisms import Mechanism

Value = Any  # an int, a float or a str; of the field randomizer also a `randomizers.LocalRandomizer`
Row = TypeVar("Row", "Field", "Kind")

LAW = ".csv"  # the end of a name that is the path of a file
MOST_ROUNDS = 10**9  # in a row of a log, or in a plan: beyond, answers take minutes and gigabytes
ALIKE = 0.8  # titles at least as alike as this (difflib's ratio) are the same word misspelt


class FieldError(ValueError):
    """A bad value of one named field.

    field : its name, a log's column or a flag without its dashes. reason : what is wrong, value included.
    """

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field, self.reason = field, reason


@dataclass(frozen=True)
class Range:
    """Where to look for a value: from `low` to `high`, first at `start`, which may be wrong by a factor of `stride`.

    increasing : whether epsilon grows with the value; then the largest safe value is sought, else the smallest. whole :
    whether values are integers.
    """

    low: float
    high: float
    start: float
    increasing: bool
    whole: bool = False
    stride: float = 4.0

    @property
    def end(self) -> str:
        """Which safe value is sought."""
        return "largest" if self.increasing else "smallest"

    @property
    def best(self) -> float:
        """The end where epsilon is smallest."""
        return self.low if self.increasing else self.high


@dataclass(frozen=True)
class Field:
    """One value with a name.

    kind : int, float or str. metavar, help : for people. range : for `solve`, if it can look for it.
    alias : names that others give to it; a log that uses one is told the right name. least, most : of a field of
    which no mechanism says what is in range.
    """

    name: str
    kind: type[int] | type[float] | type[str]
    metavar: str
    help: str
    range: Range | None = None
    alias: tuple[str, ...] = ()
    least: float = -math.inf
    most: float = math.inf

    def value(self, given: Any) -> Value:
        """`given`, a number or a text, as this field's kind; a float such as 5e3 may stand for an integer.

        A randomizer may be given as an object, or as the matrix of its law. Raises FieldError, or TypeError for
        anything but numbers and texts (bool is no number here).
        """
        if isinstance(given, bool) or not isinstance(given, (str, numbers.Real)):
            if self.name == "randomizer" and not isinstance(given, bool):
                return _local(given)
            raise TypeError(f"{self.name} must be a number or a text, got {given!r}")
        if self.kind is str:
            if isinstance(given, str):
                return given.strip()
            raise FieldError(self.name, f"expected a word, got {given!r}")
        try:
            found = self._number(given)
        except OverflowError:
            raise FieldError(self.name, "too large for a double") from None
        except ValueError as error:
            raise FieldError(self.name, str(error)) from error
        if not self.least <= found <= self.most:
            limits = f"at least {self.least}" if self.most == math.inf else f"in [{self.least}, {self.most}]"
            raise FieldError(self.name, f"must be {limits}, got {found!r}")
        return found

    def _number(self, given: Any) -> int | float:
        if isinstance(given, str):
            return parse_integer(given) if self.kind is int else parse_number(given)
        if self.kind is float:
            return float(given)
        if isinstance(given, numbers.Integral) or float(given).is_integer():
            return int(given)
        raise ValueError(f"expected an integer, got {given!r}")


@dataclass(frozen=True)
class Kind:
    """A mechanism, or a local randomizer, that fields can describe.

    maker : its class; fields are its arguments by name. required : fields that must be given. one_of : groups of fields
    of which exactly one must be given. optional : fields that may be. sampling : optional fields that say how the users
    of a round were drawn. called : (field, argument) where the constructor has another word for it.
    """

    name: str
    maker: str
    help: str
    required: tuple[str, ...] = ()
    one_of: tuple[tuple[str, ...], ...] = ()
    optional: tuple[str, ...] = ()
    sampling: tuple[str, ...] = ()
    called: tuple[tuple[str, str], ...] = ()

    @property
    def arguments(self) -> tuple[str, ...]:
        """The fields that its constructor takes."""
        choices = (name for group in self.one_of for name in group)
        return (*self.required, *choices, *self.optional)

    @property
    def fields(self) -> tuple[str, ...]:
        """All fields with a meaning for it."""
        return self.arguments + self.sampling

    @property
    def usage(self) -> str:
        """Its fields in one line: those in brackets may be left out."""
        words = list(self.required)
        if self.one_of:
            words.append("(" + " | ".join(" ".join(group) for group in self.one_of) + ")")
        words += [f"[{name}]" for name in self.optional]
        if self.sampling:
            cohort = [name for name in self.sampling if name in _COHORT]
            words.append("[" + " | ".join(cohort) + "]")
            words += [f"[{name}]" for name in self.sampling if name not in _COHORT]
        return " ".join(words)

    def check(self, noun: str, given: Iterable[str]) -> None:
        """FieldError unless all that must be given is."""
        for name in self.required:
            if name not in given:
                raise FieldError(name, f"required for the {noun} {self.name!r}, not given")
        begun = [group for group in self.one_of if set(group) & set(given)]
        if self.one_of and (len(begun) != 1 or not set(begun[0]) <= set(given)):
            choices = " and ".join(group[0] if len(group) == 1 else f"({', '.join(group)})" for group in self.one_of)
            got = {0: "neither", 1: "a part"}.get(len(begun), "both")
            raise FieldError(self.one_of[0][0], f"give exactly one of {choices}, got {got}")


def _table(*rows: Row) -> dict[str, Row]:
    return {row.name: row for row in rows}


_EPS0 = Range(1e-9, 700.0, 1.0, True)
_NOISE = Range(2e-3, 1e8, 1.0, False)  # in units of the sensitivity

#: What a mechanism is described by.
MECHANISM_FIELDS = _table(
    Field("mechanism", str, "KIND", "what was run; ldp by default, shuffled if there is a randomizer"),
    Field("n", int, "USERS", "users whose reports are shuffled together, or summed, in a round",
          Range(1, 10**13, 1000, False, whole=True),
          ("users", "num_users", "clients", "num_clients", "cohort", "cohort_size", "participants")),
    Field("eps0", float, "EPS", "local budget", _EPS0, ("epsilon0", "eps", "epsilon", "local_epsilon", "local_eps")),
    Field("k", int, "SIZE", "number of values a user can have"),
    Field("gamma", float, "PROB", "probability of a uniformly random answer", Range(1e-12, 1.0, 0.1, False)),
    Field("tv", float, "BETA", "largest total variation of two output laws"),
    Field("p", float, "RATIO", "largest likelihood ratio within a pair of output laws; of a share: the probability of"
          " a one, or of a success"),
    Field("q", float, "RATIO", "largest ratio of a pair's larger law to any other user's law"),
    Field("adversary", str, "WHO", "strong (default), weak or strong-conditional"),
    Field("randomizer", str, "NAME", "the local randomizer that all users run; or LAW.csv, the probabilities of its"
          " reports, a row for each value of a user"),
    Field("variant", str, "WHICH", "symmetric (default) or optimised"),
    Field("buckets", int, "COUNT", "number of hash values"),
    Field("size", int, "COUNT", "number of values in a reported set"),
    Field("noise", float, "PROB", "f, the permanent noise, in [0, 1)"),
    Field("one_if_zero", float, "PROB", "probability of reporting 1 for a bit that is 0"),
    Field("one_if_one", float, "PROB", "probability of reporting 1 for a bit that is 1"),
    Field("bits", int, "COUNT", "bits a user sends (default 1)"),
    Field("analysis", str, "WHICH", "tightest (default); ldp: stronger-clones or clones; shuffled: blanket, reduction"
          " or stronger-clones"),
    Field("sigma", float, "DEVIATION", "standard deviation of Gaussian noise", _NOISE),
    Field("scale", float, "SCALE", "scale of Laplace noise", _NOISE),
    Field("sensitivity", float, "DISTANCE", "how far a user can move the exact answer (default 1)"),
    Field("share", str, "NAME", "the noise that every client adds to a sum"),
    Field("dummies", str, "NAME", "the share of dummy reports that every sender adds to every bin (default none)"),
    Field("trials", int, "COUNT", "coins of a binomial share", Range(1, 10**9, 100, False, whole=True)),
    Field("variance", float, "SQUARE", "variance of a Skellam share", Range(1e-6, 1e9, 1.0, False)),
    Field("mean", float, "NUMBER", "mean of a Poisson share", Range(1e-6, 1e9, 1.0, False)),
    Field("shape", float, "NUMBER", "successes of a negative binomial share", Range(1e-6, 1e9, 1.0, False)),
    Field("dropouts", int, "COUNT", "clients whose shares may be missing (default 0)",
          Range(1, 10**9, 10, True, whole=True)),
    Field("colluding", int, "COUNT", "clients whose shares are known to the adversary (default 0)"),
    Field("modulus", int, "NUMBER", "sums are published modulo this (default: as integers)"),
    Field("coordinates", int, "COUNT", "sums that a user can move (default 1)"),
    Field("sensitivity_norm", str, "NAME", "of a user's move over all coordinates: linf (default) or l1"),
    Field("neighbours", str, "RELATION", "replace-one (default), add-or-remove-one or zero-out"),
    Field("least", int, "COUNT", "smallest count that is published", Range(1, 10**5, 20, False, whole=True)),
    Field("senders", int, "COUNT", "parties who add dummies (default 1)"),
    Field("released", str, "WHAT", "counts (default), or bins: only which of them have enough"),
    Field("norm", float, "BOUND", "bound on the norm of one user's contribution (default 1)"),
    Field("population", int, "USERS", "the cohort is a uniformly random subset of this many users",
          Range(1, 10**18 - 1, 10**6, False, whole=True)),
    Field("rate", float, "SHARE", "the cohort's share of all users; poisson: the probability of taking part",
          Range(1e-12, 1.0, 1e-2, True), ("sampling_rate", "sample_rate")),
    Field("sampling", str, "HOW", "fixed (default): a cohort of n users; poisson: each of n users takes part"
          " independently, with probability rate"),
    Field("dropout", float, "PROB", "probability that a member of the cohort sends nothing, whatever the data (default"
          " 0)"),
    Field("dropout_limit", float, "PROB", "instead of dropout: at most that for every other member, each with a"
          " probability of its own (default 0)"),
)  # fmt: skip

SAMPLINGS = ("fixed", "poisson")  #: how the users of a round are drawn
#: How the batches of a training run are drawn (`training`).
SAMPLERS = ("shuffle", "poisson", "balls-and-bins", "fixed-size", "cyclic")

#: What a row of a log has besides.
LOG_FIELDS = _table(
    Field("round", str, "LABEL", "a label, never used in a computation"),
    Field("count", int, "COUNT", "how many equal rounds the row stands for (default 1)",
          alias=("rounds", "num_rounds", "repeat", "repeats", "repetitions"), least=1, most=MOST_ROUNDS),
)  # fmt: skip

#: What a plan of `solve` or `sweep` and the command line have besides.
QUESTION_FIELDS = _table(
    Field("rounds", int, "COUNT", "equal rounds (default 1)", Range(1, MOST_ROUNDS, 100, True, whole=True), least=1,
          most=MOST_ROUNDS),
    Field("delta", float, "DELTA", "asks for epsilon at this delta, e.g. 1e-6", least=0, most=1),
    Field("epsilon", float, "EPS", "asks for delta at this epsilon, e.g. 1", least=0),
    Field("rtol", float, "RTOL", "relative width asked of the bracket on delta (default 1e-3)"),
)  # fmt: skip

FIELDS = MECHANISM_FIELDS | LOG_FIELDS | QUESTION_FIELDS

COLUMNS = ("round", *MECHANISM_FIELDS, "count")  #: every column a log may have with a meaning
PLAN_FIELDS = (*MECHANISM_FIELDS, *QUESTION_FIELDS)  #: every field a plan of `solve` or `sweep` may have

_COHORT = ("population", "rate")
_BIT = (("eps0",), ("gamma",), ("one_if_one", "one_if_zero"))
_DRAWN = (*_COHORT, "sampling", "dropout", "dropout_limit")

MECHANISMS = _table(
    Kind("ldp", "ShuffledLDP", "reports of any eps0-LDP randomizer, shuffled", ("n", "eps0"),
         optional=("analysis",), sampling=_DRAWN),
    Kind("randomizer", "ShuffledRandomizer", "the same, of known total variation", ("n", "tv"), (("eps0",), ("p", "q")),
         sampling=_DRAWN),
    Kind("rr", "ShuffledRR", "k-ary randomized response, shuffled, against an adversary", ("n", "k"),
         (("gamma",), ("eps0",)), ("adversary",), _DRAWN),
    Kind("shuffled", "Shuffled", "a named local randomizer, shuffled; its own fields are below", ("n", "randomizer"),
         optional=("analysis",), sampling=_DRAWN),
    Kind("counted-bits", "CountedBits", "randomised bits of which only the number of ones is published", ("n",),
         _BIT, ("bits",), _COHORT),
    Kind("summed", "Summed", "a named local randomizer of whose reports only the sum is published",
         ("n", "randomizer"), sampling=_COHORT),
    Kind("summed-noise", "SummedNoise", "a sum to which each of n clients adds a share of noise", ("n", "share"),
         optional=("sensitivity", "dropouts", "colluding", "modulus", "coordinates", "sensitivity_norm", "neighbours"),
         sampling=_COHORT, called=(("n", "clients"),)),
    Kind("threshold", "Threshold", "sample and threshold: users take part at random, small counts are suppressed",
         ("rate", "least"), optional=("dummies", "senders", "released", "neighbours")),
    Kind("gaussian", "Gaussian", "Gaussian noise on a query's answer, by a trusted curator", ("sigma",),
         optional=("sensitivity",), sampling=("rate",)),
    Kind("laplace", "Laplace", "Laplace noise on a query's answer, by a trusted curator", ("scale",),
         optional=("sensitivity",), sampling=("rate",)),
    Kind("poisson-gaussian", "PoissonGaussian", "Gaussian noise on the sum over a Poisson sample (DP-SGD)",
         ("sigma", "rate"), optional=("norm",)),
)  # fmt: skip

RANDOMIZERS = _table(
    Kind("binary-rr", "BinaryRandomizedResponse", "randomized response of one bit", ("eps0",)),
    Kind("k-rr", "KRandomizedResponse", "k-ary randomized response", ("k", "eps0")),
    Kind("unary-encoding", "UnaryEncoding", "every bit of a one-hot vector by itself", ("k", "eps0"),
         optional=("variant",)),
    Kind("subset-selection", "SubsetSelection", "a random set of values", ("k", "size", "eps0")),
    Kind("local-hashing", "LocalHashing", "randomized response of a hash value", ("k", "buckets", "eps0")),
    Kind("hadamard-response", "HadamardResponse", "a random row of a Hadamard matrix", ("k", "eps0")),
    Kind("rappor", "RAPPOR", "noise on the bits of a one-hot vector, drawn twice",
         ("k", "noise", "one_if_zero", "one_if_one")),
    Kind("laplace", "Laplace", "Laplace noise on a value in [0, 1]", ("eps0",)),
    Kind("gaussian", "Gaussian", "Gaussian noise on a value in [0, 1]", ("sigma",)),
)  # fmt: skip

SHARES = _table(
    Kind("binomial", "Binomial", "the ones among fair or unfair coins", ("trials",), optional=("p",)),
    Kind("poisson", "Poisson", "a Poisson number", ("mean",)),
    Kind("negative-binomial", "NegativeBinomial", "failures before so many successes", ("shape", "p")),
    Kind("skellam", "Skellam", "the difference of two Poisson numbers", ("variance",)),
    Kind("discrete-laplace", "DiscreteLaplace", "Laplace noise on the integers", ("scale",)),
    Kind("discrete-gaussian", "DiscreteGaussian", "Gaussian noise on the integers", ("sigma",)),
)

#: Fields whose value is the name of a kind with fields of its own, and the module of their makers.
INNER = {"randomizer": (RANDOMIZERS, "randomizers"), "share": (SHARES, "shares"), "dummies": (SHARES, "shares")}


def values_of(given: Mapping[str, Any], known: Iterable[str]) -> dict[str, Value]:
    """The values of a plan or a row by their fields' kinds; None and blank texts count as not given.

    Raises FieldError for a name that is not in `known` and for a bad value, TypeError for a value that is
    neither a number nor a text.
    """
    found: dict[str, Value] = {}
    known = tuple(known)
    for name, value in given.items():
        if name not in known:
            raise FieldError(str(name), _unknown(str(name), known))
        if not (value is None or (isinstance(value, str) and not value.strip())):
            found[name] = FIELDS[name].value(value)
    return found


def mechanism_from_values(values: Mapping[str, Value]) -> Mechanism:
    """The mechanism described by values of `MECHANISM_FIELDS`; fields that were not given are absent.

    Raises FieldError for a value out of range, a required one that is missing, or one that has no meaning
    for the mechanism (such as k with ldp: a number nobody uses is a misunderstanding).

    >>> mechanism_from_values({"n": 1000, "randomizer": "unary-encoding", "k": 16, "eps0": 2.0})
    Shuffled(randomizer=UnaryEncoding(k=16, eps0=2.0, variant='symmetric'), n=1000)
    """
    given = dict(values)
    kind = _named(MECHANISMS, "mechanism", given.pop("mechanism", "shuffled" if "randomizer" in given else "ldp"))
    inner, noun, last = None, "mechanism", kind
    role = next((role for role in INNER if role in kind.arguments and role in given), "")
    if isinstance(named := given.get(role), str):
        if role == "randomizer" and named.endswith(LAW):
            given[role] = _local(_matrix(named))
        else:
            inner = last = _named(INNER[role][0], noun := role, given.pop(role))
    for key in given:
        if key not in MECHANISM_FIELDS:
            raise FieldError(key, _unknown(key, MECHANISM_FIELDS))
        if not (key in kind.fields or (inner is not None and key in inner.fields)):
            raise FieldError(key, f"has no meaning for the {noun} {last.name!r}")
    kind.check("mechanism", (*given, role))
    if inner is not None:
        inner.check(role, given)
    if given.keys() >= set(_COHORT):
        raise FieldError("rate", "give at most one of population and rate, got both")
    try:
        arguments = _arguments(kind, given)
        if inner is not None:
            home = importlib.import_module(f".{INNER[role][1]}", __package__)
            arguments[role] = getattr(home, inner.maker)(**_arguments(inner, given))
        from . import mechanisms

        mechanism: Mechanism = getattr(mechanisms, kind.maker)(**arguments)
        return _sampled(mechanism, {key: given[key] for key in kind.sampling if key in given})
    except FieldError:
        raise
    except (TypeError, ValueError) as error:
        words = re.findall(r"\w+", str(error))  # a message begins with the argument's name
        blamed = next((word for word in words if word in given), "mechanism")
        raise FieldError(blamed, str(error)) from error


def _arguments(kind: Kind, given: Mapping[str, Value]) -> dict[str, Any]:
    words = dict(kind.called)
    return {words.get(key, key): given[key] for key in kind.arguments if key in given}


def _sampled(mechanism: Mechanism, drawn: Mapping[str, Any]) -> Mechanism:
    """The mechanism on the users of a round, drawn as the fields of `Kind.sampling` say."""
    from .mechanisms import PoissonSampled, Subsampled

    how = drawn.get("sampling", "fixed")
    drawn = {key: value for key, value in drawn.items() if key != "sampling"}
    if how not in SAMPLINGS:
        raise FieldError("sampling", f"expected one of {', '.join(SAMPLINGS)}, got {quoted(how)}")
    if how == "poisson":
        for name in ("population", "dropout", "dropout_limit"):
            if name in drawn:
                raise FieldError(name, "has no meaning with sampling poisson: n users, each with probability rate")
        if "rate" not in drawn:
            raise FieldError("rate", "required for sampling poisson, not given")
        return PoissonSampled(mechanism, **drawn)
    if drawn and not drawn.keys() & {*_COHORT}:  # out of everybody
        drawn["rate"] = 1.0
    return Subsampled(mechanism, **drawn) if drawn else mechanism


def _local(given: Any) -> Any:
    """A local randomizer as it is, the matrix of a law wrapped; TypeError for anything else."""
    from .randomizers import as_randomizer

    try:
        return as_randomizer(given)
    except ValueError as error:
        raise FieldError("randomizer", str(error)) from error


def _matrix(path: str) -> list[list[float]]:
    """The numbers in a CSV file without a header."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = [[parse_number(cell) for cell in row] for row in csv.reader(file) if row]
        if len(lengths := sorted({len(row) for row in rows})) > 1:
            raise ValueError(f"it has rows of {lengths[0]} and of {lengths[-1]} numbers")
        return rows
    except OSError as error:
        raise FieldError("randomizer", f"cannot read {path!r}: {error.strerror or error}") from error
    except (ValueError, csv.Error) as error:
        raise FieldError("randomizer", f"{path!r} is no matrix of probabilities: {error}") from error


def _named(kinds: Mapping[str, Kind], noun: str, name: Value) -> Kind:
    if name not in kinds:
        shown = quoted(name) if isinstance(name, str) else repr(name)
        raise FieldError(noun, f"expected one of {', '.join(kinds)}, got {shown}")
    return kinds[str(name)]


def near_miss(title: str, known: Iterable[str] = COLUMNS, taken: Container[str] = ()) -> str | None:
    """The name that a title of no field was meant for: ``count`` for ``Counts``; None if there is none.

    taken : names that are there. Next to ``eps0`` a column ``epsilon`` is something else, not its alias.
    """
    plain = _plain(title)
    by_name = {_plain(name): name for name in known}
    others = {_plain(a): name for name in known if name not in taken for a in FIELDS[name].alias}
    if plain in (exact := others | by_name):
        return exact[plain]
    # Of about the same length, and no single letters: "lr" and "country" mean themselves.
    alike = [name for name in by_name if min(len(name), len(plain)) > 2]
    close = difflib.get_close_matches(plain, alike, cutoff=ALIKE)
    return next((by_name[name] for name in close if abs(len(name) - len(plain)) <= 1), None)


def _plain(title: str) -> str:
    return re.sub(r"[^a-z0-9]", "", title.lower())


def _unknown(name: str, known: Iterable[str]) -> str:
    near = near_miss(name, known)
    return "is no field" if near is None else f"is no field; did you mean {near!r}?"


def kind_lines() -> list[str]:
    """The kinds and their fields, a line each, for a terminal."""
    tables = {"mechanisms": MECHANISMS, "randomizers": RANDOMIZERS, "shares": SHARES}
    width = max(len(name) for kinds in tables.values() for name in kinds)
    lines = []
    for title, kinds in tables.items():
        lines.append(f"{title} and their fields ([...] may be left out):")
        lines += [f"  {kind.name:{width}}  {kind.usage}" for kind in kinds.values()]
    return lines

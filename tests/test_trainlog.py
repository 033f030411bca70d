"""Training logs: what a good one means, and that a bad one names its line and column."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from pld_shuffle import Accountant, RenyiAccountant
from pld_shuffle.mechanisms import ShuffledLDP, ShuffledRR, Subsampled
from pld_shuffle.mechanisms.imported import ImportedPair
from pld_shuffle.storage import parse_integer, parse_number
from pld_shuffle.trainlog import SAMPLE, LogError, LogWarning, TrainingLog, training_log

LDP_LOG = """\
round,mechanism,n,eps0,population
1,ldp,4873,2.0,1000000
2,ldp,5120,2.0,1000000
"""


def total(log: TrainingLog) -> int:
    return sum(count for _, count in log.rounds)


def read(text: str) -> TrainingLog:
    return training_log(io.StringIO(text), "log.csv")


# --- good logs ------------------------------------------------------------------------------


def test_rows_of_several_kinds() -> None:
    """Every kind one by one: test_fields.py; here in one log; equal rows share a mechanism."""
    log = read(
        "round,mechanism,n,eps0,k,gamma,adversary,population,rate,count\n"
        "1,ldp,4873,2.0,,,,1000000,,3\n2,rr,200,,4,0.25,weak,,0.5,\n3,,400,1,,,,,,\n4,,400,1,,,,,,\n"
    )
    assert log.rounds == (
        (Subsampled(ShuffledLDP(eps0=2.0, n=4873), population=1_000_000), 3),
        (Subsampled(ShuffledRR(k=4, n=200, gamma=0.25, adversary="weak"), rate=0.5), 1),
        *[(ShuffledLDP(eps0=1.0, n=400), 1)] * 2,
    )
    assert log.rounds[2][0] is log.rounds[3][0] and log.notes == () and total(log) == 6


@pytest.mark.parametrize(
    "text",
    [
        "n,eps0\n10,1\n", "\ufeffn,eps0\n10,1\n", "n,eps0\r\n10,1\r\n", "n,eps0\r10,1\r", "n,eps0\n10,1",
        "\n\nn,eps0\n\n10,1\n\n   \n", ' n , eps0\n "10",\t1 \n', "eps0,n\n1,10\n", "n,eps0\n10.0,1e0\n",
        "n,eps0\n1e1,+1.\n",
    ],
)  # fmt: skip
def test_ways_to_write_the_same(text: str, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(text.encode())
    assert training_log(path).rounds == ((ShuffledLDP(eps0=1.0, n=10), 1),)


@pytest.mark.parametrize("text_only", [False, True])
def test_standard_input(monkeypatch: pytest.MonkeyPatch, text_only: bool) -> None:
    data = "\ufeff" + LDP_LOG
    stream = io.StringIO(data) if text_only else io.TextIOWrapper(io.BytesIO(data.encode()))
    monkeypatch.setattr(sys, "stdin", stream)
    log = training_log("-")
    assert (total(log), log.name) == (2, "standard input")


# --- logs that are no files of their own --------------------------------------------------------

ROWS = [
    {"round": 1, "n": 100, "eps0": 1.5, "rate": None, "count": 3},
    {"round": 2, "n": "200", "eps0": 2, "rate": "", "count": 1},
    {"round": 3, "n": 300.0, "eps0": "1e0", "rate": 0.5},
]
OF_ROWS = (
    (ShuffledLDP(eps0=1.5, n=100), 3),
    (ShuffledLDP(eps0=2.0, n=200), 1),
    (Subsampled(ShuffledLDP(eps0=1.0, n=300), rate=0.5), 1),
)
CSV_ROWS = "round,n,eps0,rate,count\n1,100,1.5,,3\n2,200,2,,1\n3,300,1e0,0.5,\n"


def test_mappings_and_files_are_logs(tmp_path: Path) -> None:
    log = training_log(ROWS, name="rows")
    assert log.rounds == OF_ROWS and total(log) == 5 and log.name == "rows"
    assert training_log(iter(ROWS)).rounds == OF_ROWS
    assert training_log(log) is log
    path = tmp_path / "log.csv"
    path.write_text("\ufeff" + CSV_ROWS, encoding="utf-8")
    assert training_log(path).rounds == training_log(str(path)).rounds == OF_ROWS
    for file in (path.open(encoding="utf-8"), path.open("rb")):
        with file:
            log = training_log(file)
            assert (log.rounds, log.name) == (OF_ROWS, "log.csv")
    assert training_log(io.StringIO(CSV_ROWS), name="pasted").name == "pasted"
    assert training_log(io.BytesIO(CSV_ROWS.encode())).rounds == OF_ROWS
    with pytest.raises(OSError):
        training_log(tmp_path / "none.csv")


def test_pandas_frames_are_logs() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(io.StringIO(CSV_ROWS))
    assert training_log(frame).rounds == training_log(frame.convert_dtypes()).rounds == OF_ROWS
    words = pandas.DataFrame({"mechanism": ["rr"], "k": [4], "n": [10], "gamma": [0.5]})
    assert training_log(words).rounds == ((ShuffledRR(k=4, n=10, gamma=0.5), 1),)
    with pytest.raises(LogError, match="training log, row 2, column 'n': expected an integer"):
        training_log(pandas.DataFrame({"n": [10, 10.5], "eps0": [1, 1]}))
    with pytest.raises(LogError, match="twice"):
        training_log(pandas.DataFrame([[1, 2, 3]], columns=["n", "eps0", "n"]))


def test_polars_frames_are_logs() -> None:
    polars = pytest.importorskip("polars")
    assert training_log(polars.read_csv(io.StringIO(CSV_ROWS))).rounds == OF_ROWS
    with pytest.raises(LogError, match=r"row 1, column 'eps0'.*nan"):
        training_log(polars.DataFrame({"n": [10], "eps0": [float("nan")]}))


#: Mappings are read as strictly: rows, place, column, part of the reason.
BAD_ROWS = [
    ([], 0, None, "empty"),
    ([{"n": 10, "eps0": 1}, {"n": 10}], 2, "eps0", "required"),
    ([{"n": 10, "eps0": 1}, {"n": True, "eps0": 1}], 2, "n", "must be a number"),
    ([{"n": [10], "eps0": 1}], 1, "n", "must be a number"),
    ([{"n": 10, "eps0": float("nan")}], 1, "eps0", "nan"),
    ([{"n": 10, "eps0": 1, "counts": 50}], 0, "counts", "did you mean 'count'"),
    ([{"n": 10, "eps0": 1, "count": 0}], 1, "count", "0"),
    ([{"n": 10, "eps0": 10**400}], 1, "eps0", "too large"),
    ([{"n": 10, "eps0": 1, "adversary": 3}], 1, "adversary", "expected a word"),
    ([{"loss": 3}], 0, "n", "missing: "),
    ([{"loss": 3}], 0, "n", "columns are round, mechanism, n, eps0"),
    ([{"n": 10, "eps0": 1}, {"mechanism": "threshold", "rate": 0.1, "least": 20, "neighbours": "zero-out"}],
     2, "neighbours", "a round for neighbours that are zero-out, in a log of others that are replace-one"),
]  # fmt: skip


@pytest.mark.parametrize("source", [3, None, {"n": [10]}, [3], b"n,eps0", [("n", 10)]])
def test_other_things_are_no_logs(source: object) -> None:
    with pytest.raises(TypeError, match="source must be a path, an open file"):
        training_log(source)


@pytest.mark.parametrize("maker", [Accountant, RenyiAccountant])
def test_accountants_compose_logs(maker: type, tmp_path: Path) -> None:
    """The same as round by round, whatever holds the log; and in full or not at all."""
    expected = maker()
    for mechanism, count in OF_ROWS:
        expected.compose(mechanism, count)
    (tmp_path / "log.csv").write_text(CSV_ROWS)
    accountant = maker().compose_log(ROWS)
    assert accountant == expected == maker().compose_log(tmp_path / "log.csv")
    assert accountant.compose_log(ROWS) is accountant and accountant.rounds == 10
    before = accountant.ledger
    with pytest.raises(LogError):
        accountant.compose_log([*ROWS, {"n": 0, "eps0": 1}])
    other = ImportedPair(0.5, low=1, masses=(0.1,), infinity=0.0, neighbours="add-or-remove-one")
    with pytest.raises(ValueError, match="neighbouring relation"):
        accountant.compose_log(TrainingLog("mixed", (*OF_ROWS, (other, 1))))
    assert accountant.ledger == before
    with pytest.warns(LogWarning, match="ignored unknown column loss"):
        maker().compose_log([{"n": 10, "eps0": 1, "loss": 0.5}])


# --- remarks, and columns that are nearly right -------------------------------------------------


@pytest.mark.parametrize(
    ("titles", "shown"),
    [("loss,,loss", "columns loss, one without a name")]
    + [(t, f"column {t}") for t in ["lr", "epsilon", "country", "account", "round_id", "date", "step", "m", "x"]],
)
def test_columns_of_ones_own_are_ignored_and_said(titles: str, shown: str) -> None:
    log = read(f"n,eps0,{titles}\n10,1" + ",50" * len(titles.split(",")) + "\n")
    assert log.rounds == ((ShuffledLDP(eps0=1.0, n=10), 1),)
    assert log.notes == (f"log.csv: ignored unknown {shown}",)


@pytest.mark.parametrize(("header", "titles", "meant"), [
    ("n,eps0", "Count,counts,coutn,COUNT ,rounds,Num-Rounds", "count"),
    ("n,eps0", "Population,populations", "population"),
    ("n,eps0", "Rate,sampling rate", "rate"),
    ("n,eps0", "gama", "gamma"),
    ("n,eps0", "Adversary", "adversary"),
    ("n,eps0", "mechansim", "mechanism"),
    ("eps0,round", "N,users,cohort_size", "n"),
    ("n,eps0", "Round", "round"),
    ("n,k", "EPS-0,epsilon0,eps,Epsilon,local_eps", "eps0"),
])  # fmt: skip
def test_a_near_miss_of_a_column_is_an_error(header: str, titles: str, meant: str) -> None:
    """50 rounds must not count as one because their column was called counts."""
    for title in titles.split(","):
        with pytest.raises(LogError, match=f"did you mean '{meant}'") as caught:
            read(f"{header},{title}\n10,1,50\n")
        assert (caught.value.line, caught.value.column) == (1, title.strip())


@pytest.mark.parametrize(("labels", "remark"), [
    ("1 2 3", None),
    ("7 8 9", None),
    ("1 2 4", "round 4 follows round 2 at line 4"),
    ("1 1 2", "round 1 follows round 1 at line 3"),
    ("a b c", None),
    ("0.1 0.2 0.3", None),
])  # fmt: skip
def test_missing_or_doubled_rounds_are_remarked(labels: str, remark: str | None) -> None:
    log = read("round,n,eps0\n" + "".join(f"{label},10,1\n" for label in labels.split()))
    assert total(log) == 3
    assert [remark in note for note in log.notes if remark] == [True] * (remark is not None)
    assert len(log.notes) == (remark is not None)


@pytest.mark.parametrize(("last", "remarks"), [
    ("140,700000,9,0.1\n", []),
    ("140,700000,9,\n", ["dropout is blank at line 4 alone"]),
    ("140,700000,9,", ["the last line has no end", "dropout is blank at line 4 alone"]),
    ("140,700000,9,0.1", ["the last line has no end"]),
])  # fmt: skip
def test_a_last_row_written_by_half_is_remarked(last: str, remarks: list[str]) -> None:
    log = read("n,population,eps0,dropout\n140,700000,9,0.2\n150,700000,9,0.2\n" + last)
    assert len(log.rounds) == 3 and len(log.notes) == len(remarks)
    assert all(remark in note for remark, note in zip(remarks, log.notes, strict=True))


# --- bad logs -------------------------------------------------------------------------------

BAD_LOGS = [
    # text, line, column, part of the reason
    ("", 1, None, "empty"),
    ("\n \n", 1, None, "empty"),
    ("\ufeff", 1, None, "empty"),
    ("n,eps0\n", 2, None, "no rounds"),
    ("10,1\n11,1\n", 1, "n", "header"),
    ("n;eps0\n10;1\n", 1, "n", "comma-separated"),
    ("N,eps0\n10,1\n", 1, "N", "did you mean 'n'"),
    ("n,eps0,n\n10,1,10\n", 1, "n", "twice"),
    ("n,eps0,population\n10,1,100\n11,1\n", 3, "population", "missing"),
    ("n,eps0\n10,1\n11,1,000\n", 3, None, "3 cells under 2 columns"),
    ("n,eps0\n10,1\n,\n", 3, "n", "required"),
    ("n,eps0\n10,\n", 2, "eps0", "required"),
    ("n,eps0,population,rate\n10,1,100,0.1\n", 2, "rate", "both"),
    ("n,eps0,mechanism\n10,1,laplacian\n", 2, "mechanism", "'laplacian'"),
    ("n,eps0,k\n10,1,4\n", 2, "k", "no meaning"),
    ("n,eps0\n10,1\n\n0,1\n", 4, "n", "0"),
    ("n,eps0\n10.5,1\n", 2, "n", "'10.5'"),
    ("n,eps0\nnan,1\n", 2, "n", "'nan'"),
    ("n,eps0\n1_000,1\n", 2, "n", "'1_000'; digits are not grouped"),
    ('n,eps0\n"10,000",1\n', 2, "n", "'10,000'; digits are not grouped"),
    ("n,eps0\n\u0661\u0660,1\n", 2, "n", "integer"),
    ("n,eps0\n1e30,1\n", 2, "n", "too large"),
    ("n,eps0\n1e999999999,1\n", 2, "n", "too large"),
    ("n,eps0\n" + "9" * 5000 + ",1\n", 2, "n", "too large"),
    ("n,eps0\n10,nan\n", 2, "eps0", "'nan'"),
    ("n,eps0\n10,inf\n", 2, "eps0", "'inf'"),
    ("n,eps0\n10,1e999\n", 2, "eps0", "too large"),
    ("n,eps0\n10,1e-999\n", 2, "eps0", "too small"),
    ('n,eps0\n10,"1,5"\n', 2, "eps0", "'1,5'"),
    ("n,eps0,count\n10,1,0\n", 2, "count", "0"),
    ("n,eps0,count\n10,1,1e12\n", 2, "count", "must be in [1, 1000000000], got 1000000000000"),
    ('n,eps0\n10,1\n11,"1\n', 3, None, "not CSV"),
    ('n,eps0\n10,1\n11,"1"0\n', 3, None, "not CSV"),
    ('n,eps0,note\n10,1,"two\nlines"\n0,1,\n', 4, "n", "0"),
    ("n,eps0\n10,1\x00\n", 2, None, ""),
    (LDP_LOG.encode("utf-16"), 1, None, "UTF-16"),
    (b"n,eps0\n10,1\n11,\xff1\n", 3, None, "0xff"),
]


@pytest.mark.parametrize(("source", "line", "column", "reason"), BAD_LOGS + BAD_ROWS)
def test_a_bad_log_names_line_and_column(source, line, column, reason, tmp_path):
    path, nul = tmp_path / "log.csv", isinstance(source, str) and "\x00" in source
    if not isinstance(source, list):
        path.write_bytes(source.encode() if isinstance(source, str) else source)
        source = path
    with pytest.raises(LogError) as caught:
        training_log(source)
    error = caught.value
    assert reason in error.reason and error.line == line
    if not nul:  # the csv module refuses NUL itself before Python 3.11
        assert error.column == column
    assert source is not path or f"log.csv, line {line}" in str(error)
    assert "\n" not in str(error) and len(str(error)) < 500


def test_numbers() -> None:
    """Large integers are exact."""
    assert parse_integer("123456789012345678") == 123456789012345678
    assert parse_integer("123456789012345678.000") == 123456789012345678
    with pytest.raises(ValueError, match="expected an integer"):
        parse_integer("1.00000000000000000000000000000000001")
    assert parse_number(" 1e-6 ") == 1e-6 and parse_number("0.0e5") == 0.0
    for text in ("", "-", ".", "e5", "0x10", "1e", "1 2", "infinity"):
        with pytest.raises(ValueError, match="expected a number"):
            parse_number(text)


# --- the sample -----------------------------------------------------------------------------


def test_the_sample(tmp_path: Path) -> None:
    """200 varied rounds; the file is what its script writes."""
    log = training_log(SAMPLE)
    assert total(log) == len(log.rounds) == 200 and log.notes == ()
    assert len({mechanism for mechanism, _ in log.rounds}) > 100
    for mechanism, count in log.rounds:
        assert count == 1 and isinstance(mechanism, Subsampled)
        assert mechanism.population == 100_000 and isinstance(mechanism.mechanism, ShuffledLDP)
        assert mechanism.mechanism.eps0 == 5.5 and 4_500 < mechanism.mechanism.n < 5_500
    script = Path(__file__).parent.parent / "benchmarks" / "make_sample_log.py"
    if not script.exists():
        pytest.skip("the benchmarks are not part of this installation")
    subprocess.run([sys.executable, script, tmp_path / "log.csv"], check=True)
    assert (tmp_path / "log.csv").read_bytes() == SAMPLE.read_bytes()

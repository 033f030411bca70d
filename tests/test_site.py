"""The documentation site in a real browser, opened from disk: links, search, formulas, the calculator.

Needs the built site (``sphinx-build -c docs . build/site``), chromium with its driver, and selenium (the
"docs" extra); skipped where one of them is missing. `.ci/run` has all of them.
"""

from __future__ import annotations

import json
import math
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pld_shuffle import Accountant, ShuffledLDP, Subsampled

webdriver = pytest.importorskip("selenium.webdriver")
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

ROOT = Path(__file__).parent.parent
SITE = ROOT / "build" / "site"
TABLE = ROOT / "docs" / "_static" / "calculator_table.js"

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="no chromium with chromedriver"),
    pytest.mark.skipif(not (SITE / "search.html").exists(), reason="build/site is not built"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    # No host is reachable: whatever the pages need is in the folder.
    for flag in ("headless=new", "no-sandbox", "host-resolver-rules=MAP * ~NOTFOUND"):
        options.add_argument(f"--{flag}")
    options.add_argument("--window-size=1300,1100")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


def open_page(browser: Any, name: str) -> None:
    browser.get(f"file://{SITE / name}")


def wait(browser: Any, condition: Any) -> Any:
    return WebDriverWait(browser, 20).until(condition)


def errors(browser: Any) -> list[str]:
    return [e["message"] for e in browser.get_log("browser") if e["level"] == "SEVERE"]


def test_start_page_and_a_link(browser: Any) -> None:
    open_page(browser, "docs/index.html")
    assert browser.find_element(By.TAG_NAME, "h1").text.startswith("pld_shuffle")
    browser.execute_script("arguments[0].click()", browser.find_element(By.LINK_TEXT, "choices"))
    wait(browser, lambda b: b.current_url.endswith("docs/choices.html"))
    assert "Which mechanism did I run?" in browser.find_element(By.TAG_NAME, "h1").text
    assert errors(browser) == []


def test_search_finds_a_class_and_leads_to_it(browser: Any) -> None:
    open_page(browser, "docs/index.html")
    box = browser.find_element(By.CSS_SELECTOR, "input[name=q]")
    box.send_keys("ShuffledLDP")
    box.submit()
    found = wait(browser, lambda b: b.find_elements(By.CSS_SELECTOR, "#search-results li a"))
    objects = [link for link in found if "pld_shuffle.ShuffledLDP.html" in link.get_attribute("href")]
    assert objects
    browser.execute_script("arguments[0].click()", objects[0])
    wait(browser, lambda b: "pld_shuffle.ShuffledLDP.html" in b.current_url)
    assert "eps0" in browser.find_element(By.CSS_SELECTOR, "dl.py.class").text
    assert errors(browser) == []


def found_first(browser: Any, words: str) -> Any:
    """The first result of a search."""
    open_page(browser, f"search.html?q={words.replace(' ', '+')}")
    return wait(browser, lambda b: b.find_elements(By.CSS_SELECTOR, "#search-results li"))[0]


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("dropout", "docs/howto/federated.html#dropouts"),
        ("my training shuffles", "docs/howto/training.html"),
        ("sum of reports", "docs/telemetry.html"),
        ("adaptive parameters", "docs/howto/adaptive.html"),
        ("audit", "docs/howto/audit.html"),
        ("check a certificate", "docs/certificate_format.html"),
        ("ShuffledLDP", "pld_shuffle.ShuffledLDP.html#pld_shuffle.ShuffledLDP"),
    ],
)
def test_what_a_search_finds_first(browser: Any, words: str, page: str) -> None:
    """The page that answers, with an excerpt in which a word is marked."""
    first = found_first(browser, words)
    assert first.find_element(By.TAG_NAME, "a").get_attribute("href").endswith(page)
    assert first.find_elements(By.CSS_SELECTOR, "p.context mark")
    assert errors(browser) == []


@pytest.mark.parametrize("words", ["delta", "dropout", "rounds"])
def test_how_tos_come_before_the_changelog(browser: Any, words: str) -> None:
    found_first(browser, words)
    wait(browser, lambda b: "finished" in b.find_element(By.CSS_SELECTOR, ".search-summary").text)
    links = browser.find_elements(By.CSS_SELECTOR, "#search-results li a")
    pages = [link.get_attribute("href") for link in links]
    first, log = ([i for i, page in enumerate(pages) if part in page] for part in ("/howto/", "CHANGELOG"))
    assert first and (not log or first[0] < log[0])


def test_the_site_begins_at_its_root(browser: Any) -> None:
    open_page(browser, "index.html")
    wait(browser, lambda b: b.current_url.endswith("docs/index.html"))


@pytest.mark.parametrize("page", ["theory", "swap", "sums", "shuffled_batches", "bounds", "howto/adaptive"])
def test_formulas_are_drawn(browser: Any, page: str) -> None:
    """All of them, and none with an error."""
    open_page(browser, f"docs/{page}.html")
    formulas = len(browser.find_elements(By.CSS_SELECTOR, ".math"))
    assert formulas > 20
    drawn = WebDriverWait(browser, 120)
    drawn.until(lambda b: len(b.find_elements(By.TAG_NAME, "mjx-container")) == formulas)
    assert browser.find_elements(By.CSS_SELECTOR, "[data-mml-node=merror]") == []
    assert errors(browser) == []


def test_pages_load_nothing_from_elsewhere(browser: Any) -> None:
    """Scripts, styles, fonts and pictures are in the folder; none is missing."""
    for name in ("docs/index.html", "docs/calculator.html", "notebooks/quickstart.html", "docs/theory.html"):
        open_page(browser, name)
        loaded = browser.execute_script(
            "return [...document.querySelectorAll('script[src], img[src], link[rel=stylesheet]')]"
            ".map((element) => element.src || element.href)"
        )
        assert loaded and all(url.startswith(("file:", "data:")) for url in loaded)
        assert errors(browser) == []


# --- the calculator ---------------------------------------------------------------------------


def fill(browser: Any, **fields: object) -> None:
    script = """
        for (const [name, value] of Object.entries(arguments[0]))
            document.querySelector(`#epsilon-calculator [name=${name}]`).value = value;
        document.querySelector("#epsilon-calculator input").dispatchEvent(new Event("input", {bubbles: true}));
    """
    browser.execute_script(script, {name: str(value) for name, value in fields.items()})


def calculated(browser: Any) -> tuple[float, float]:
    """What the page shows: a lower bound, and the guarantee."""
    upper = browser.find_element(By.CSS_SELECTOR, "#epsilon-calculator strong")
    lower = browser.find_element(By.CSS_SELECTOR, "#epsilon-calculator [data-lower]")
    assert float(upper.text) >= float(upper.get_attribute("data-epsilon"))
    assert float(lower.text) <= float(lower.get_attribute("data-lower"))
    return float(lower.text), float(upper.text)


def stored() -> dict[str, Any]:
    text = TABLE.read_text(encoding="utf-8")
    return json.loads(text[text.index("{") : text.rindex("}") + 1])  # type: ignore[no-any-return]


def spent(setting: dict[str, Any]) -> tuple[float, float]:
    mechanism: Any = ShuffledLDP(setting["eps0"], setting["n"], analysis=stored()["analysis"])
    if setting["population"]:
        mechanism = Subsampled(mechanism, population=setting["population"])
    bounds = Accountant().compose(mechanism, setting["rounds"]).epsilon_bounds(setting["delta"])
    return float(bounds.lower), float(bounds.upper)


def settings() -> list[dict[str, Any]]:
    """Settings off the grid, inside it, with and without a population."""
    source = random.Random(1)
    found = []
    for i in range(12):
        n = int(10 ** source.uniform(2, 5))
        found.append(
            {
                "eps0": round(source.uniform(0.3, 6.0), 2),
                "n": n,
                "population": "" if i % 3 == 0 else int(n * 10 ** source.uniform(0.1, 2.9)),
                "rounds": int(10 ** source.uniform(0, 3.5)),
                "delta": float(f"{10 ** source.uniform(-7.9, -5.1):.2e}"),
            }
        )
    return found


@pytest.mark.parametrize("setting", settings(), ids=range(12))
def test_the_calculator_is_safe(browser: Any, setting: dict[str, Any]) -> None:
    """The accountant's own bracket and the page's meet, and its guarantee is not below the accountant's."""
    open_page(browser, "docs/calculator.html")
    fill(browser, **setting)
    low, high = calculated(browser)
    lower, upper = spent(setting)
    assert low <= upper and lower <= high
    assert upper <= high * 1.0001  # brackets of the table are wider than that
    assert errors(browser) == []


def test_within_one_step_of_the_grid(browser: Any) -> None:
    """The guarantee is the accountant's own, rounded up, at the corner next to the setting."""
    table = stored()
    axes = table["axes"]
    open_page(browser, "docs/calculator.html")
    for setting in settings():
        fill(browser, **setting)
        rate = setting["n"] / (setting["population"] or setting["n"])
        above = {"eps0": setting["eps0"], "rate": rate, "rounds": setting["rounds"]}
        corner = {name: min(x for x in axes[name] if x >= value) for name, value in above.items()}
        for name in ("n", "delta"):
            corner[name] = max(x for x in axes[name] if x <= setting[name])
        mechanism: Any = ShuffledLDP(corner["eps0"], corner["n"], analysis=table["analysis"])
        if corner["rate"] < 1:
            mechanism = Subsampled(mechanism, rate=corner["rate"])
        there = Accountant().compose(mechanism, corner["rounds"]).epsilon_bounds(corner["delta"])
        _, high = calculated(browser)
        eps0, rounds, slack = setting["eps0"], setting["rounds"], -math.log(setting["delta"])
        advanced = rounds * eps0 * math.tanh(eps0 / 2) + eps0 * math.sqrt(2 * rounds * slack)
        alone = min(rounds * eps0, advanced)  # Dwork, Rothblum, Vadhan 2010; mean of Kairouz et al. 2015
        assert min(there.lower, alone * (1 - 1e-9)) <= high <= 1.005 * min(there.upper, 1.001 * alone)


def test_points_of_the_grid_are_exact(browser: Any) -> None:
    open_page(browser, "docs/calculator.html")
    setting = {"eps0": 6, "n": 5_000, "population": 1_000_000, "rounds": 2_000, "delta": 1e-6}
    fill(browser, **setting)
    low, high = calculated(browser)
    lower, upper = spent(setting)
    assert 0.995 * lower <= low <= upper <= high <= 1.005 * upper


@pytest.mark.parametrize(
    ("field", "value"),
    [("eps0", "four"), ("eps0", "-1"), ("n", "2.5"), ("n", ""), ("population", "10"),
     ("rounds", "0"), ("delta", "1"), ("delta", "0")],
)  # fmt: skip
def test_bad_input_is_named(browser: Any, field: str, value: str) -> None:
    open_page(browser, "docs/calculator.html")
    fill(browser, **{field: value})
    said = browser.find_element(By.CSS_SELECTOR, "#epsilon-calculator [role=status]").text
    assert said.startswith(f"{field} must be") and f'"{value}"' in said
    assert browser.find_elements(By.CSS_SELECTOR, "#epsilon-calculator svg") == []


def test_outside_of_the_table(browser: Any) -> None:
    """Then the local budgets are composed, and the page says so."""
    open_page(browser, "docs/calculator.html")
    fill(browser, eps0=9, n=50, population="", rounds=3, delta=1e-6)
    said = browser.find_element(By.CSS_SELECTOR, "#epsilon-calculator strong").text
    assert float(said) == 27.0
    assert "Outside of the table" in browser.find_element(By.ID, "epsilon-calculator").text

// What the search shows first, and an excerpt of every page found. Loaded by the search page only,
// after page_texts.js (docs/offline.py) and before Sphinx's own searchtools.js, which asks Scorer.

// The words that were asked for, without the ending of a plural. Sphinx's language_data.js, which comes later,
// says which words say nothing.
const sought = () => {
  const words = (new URLSearchParams(location.search).get("q") || "").toLowerCase().match(/[\p{L}\p{N}_]+/gu) || [];
  return words.filter((word) => ![...stopwords].includes(word)).map((word) => word.replace(/(?<=...)s$/, ""));
};

// What somebody wants who asks: how to do it, then why and what else, and last what was measured or has changed.
const WORTH = [
  [/^docs\/(howto\/|telemetry|people|choices)/, 30],
  [/^notebooks\//, 15],
  [/^docs\/reference\//, 0],
  [/^docs\/fuzz|^benchmarks\//, -20],
  [/^CHANGELOG/, -40],
  [/^docs\//, 10],
];

const count = (word, text) => text.toLowerCase().split(word).length - 1;

var Scorer = {
  score: ([page, title, , , score]) => {
    const [, worth] = WORTH.find(([pattern]) => pattern.test(page)) || [null, 0];
    const words = sought();
    const named = words.filter((word) => count(word, title)).length;
    const text = PAGE_TEXTS[page] || "";
    const often = (word) => Math.min(count(word, text), 20); // more only says that a page is long
    return score + worth + 12 * named + 4 * words.reduce((sum, word) => sum + Math.log2(1 + often(word)), 0);
  },
  objNameMatch: 40,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

// The place of a page with the most of the words near each other, and what stands around it.
const excerpt = (page) => {
  const text = PAGE_TEXTS[page] || "";
  const words = sought();
  const any = new RegExp(words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|") || "$^", "giu");
  let [most, start] = [0, 0];
  for (const found of text.matchAll(any)) {
    const around = text.slice(found.index, found.index + 160);
    const here = words.filter((word) => count(word, around)).length;
    if (here > most) [most, start] = [here, Math.max(0, found.index - 80)];
  }
  const shown = document.createElement("p");
  shown.className = "context";
  const part = (start ? "…" : "") + text.slice(start, start + 260) + "…";
  let end = 0;
  for (const found of part.matchAll(any)) {
    shown.append(part.slice(end, found.index));
    shown.appendChild(document.createElement("mark")).textContent = found[0];
    end = found.index + found[0].length;
  }
  shown.append(part.slice(end));
  return shown;
};

document.addEventListener("DOMContentLoaded", () => {
  const results = document.getElementById("search-results");
  if (!results) return;
  new MutationObserver((changes) => {
    for (const item of changes.flatMap((change) => [...change.addedNodes])) {
      if (item.tagName !== "LI" || item.querySelector("p.context")) continue;
      const page = item.querySelector("a").getAttribute("href").split("#")[0].replace(/\.html.*$/, "");
      item.appendChild(excerpt(page));
    }
  }).observe(results, { childList: true, subtree: true });
});

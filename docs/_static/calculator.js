// The calculator: looks up CALCULATOR_TABLE (calculator_table.js) on the safe side, and draws a curve.
"use strict";

const Calculator = (() => {
  const { axes, epsilon } = CALCULATOR_TABLE;
  const NAMES = Object.keys(axes);
  // Epsilon grows with these, and falls with the others.
  const GROWS = new Set(["eps0", "rate", "rounds"]);

  // Index of the grid value next to `value`, above or below (equal counts); -1 if there is none.
  function next(name, value, above) {
    const axis = axes[name];
    if (above) return axis.findIndex((x) => x >= value);
    return axis.findLastIndex((x) => x <= value);
  }

  // The corner of the grid cell where epsilon is largest (safe) or smallest; null outside the grid.
  function corner(setting, safe) {
    const found = {};
    for (const name of NAMES) {
      found[name] = next(name, setting[name], GROWS.has(name) === safe);
      if (found[name] < 0) return null;
    }
    return found;
  }

  // The other methods are stored in thousandths of the upper ends, or of 1e-6 if these are smaller.
  function value(method, at) {
    const index = NAMES.reduce((i, name) => i * axes[name].length + at[name], 0);
    const upper = epsilon.upper[index];
    return method === "upper" ? upper : (epsilon[method][index] / 1000) * Math.max(upper, 1e-6);
  }

  // Composition of local budgets, without a shuffler; rounded up by far more than the arithmetic loses.
  function local({ eps0, rounds, delta }) {
    const advanced =
      rounds * eps0 * Math.tanh(eps0 / 2) + eps0 * Math.sqrt(2 * rounds * Math.log(1 / delta));
    return Math.min(rounds * eps0, advanced * (1 + 1e-9));
  }

  // upper: certified; lower: no analysis can go below; renyi and local: alternatives, local the loosest.
  function answer(setting) {
    const safe = corner(setting, true);
    const other = corner(setting, false);
    const alone = local(setting);
    return {
      safe,
      local: alone,
      upper: safe ? Math.min(alone, value("upper", safe)) : alone,
      renyi: safe ? Math.min(alone, value("renyi", safe)) : alone,
      lower: other ? value("lower", other) : 0,
    };
  }

  // Input as numbers, or an error that names the field.
  function read(fields) {
    const setting = {};
    const rules = {
      eps0: (x) => x > 0 && x <= 700,
      n: (x) => Number.isInteger(x) && x >= 1,
      population: (x) => Number.isInteger(x) && x >= setting.n,
      rounds: (x) => Number.isInteger(x) && x >= 1,
      delta: (x) => x > 0 && x < 1,
    };
    const wanted = {
      eps0: "a number above 0, at most 700",
      n: "a whole number, at least 1",
      population: "a whole number, at least n, or empty",
      rounds: "a whole number, at least 1",
      delta: "a number between 0 and 1",
    };
    for (const name of Object.keys(rules)) {
      const text = fields[name].trim().replaceAll("_", "").replaceAll(",", "");
      const number = name === "population" && text === "" ? setting.n : Number(text || NaN);
      if (!rules[name](number)) throw new Error(`${name} must be ${wanted[name]}, got "${fields[name]}"`);
      setting[name] = number;
    }
    setting.rate = setting.n / setting.population;
    return setting;
  }

  function curve(setting) {
    return axes.rounds.map((rounds) => ({ rounds, ...answer({ ...setting, rounds }) }));
  }

  return { answer, axes, curve, read };
})();

// Four digits, rounded up (down for lower ends); the tolerance keeps numbers that have four digits.
function shown(x, up = true) {
  if (x === 0) return "0";
  const step = 10 ** (Math.floor(Math.log10(x)) - 3);
  const scaled = (up ? Math.ceil(x / step - 1e-9) : Math.floor(x / step + 1e-9)) * step;
  return String(Number(scaled.toPrecision(4)));
}

function picture(setting) {
  const width = 640, height = 340, left = 84, right = 128, top = 14, bottom = 44;
  const points = Calculator.curve(setting);
  const lines = [
    ["local", "no shuffler", "#888888", "2 4"],
    ["renyi", "Renyi (RDP)", "#c26a00", "7 4"],
    ["upper", "certified", "#0072b2", ""],
  ];
  const values = points.flatMap((p) => lines.map(([key]) => p[key])).filter((v) => v > 0);
  const low = Math.floor(Math.log10(Math.min(...values)));
  const high = Math.ceil(Math.log10(Math.max(...values)));
  const last = Math.log10(points.at(-1).rounds);
  const x = (rounds) => left + ((width - left - right) * Math.log10(rounds)) / last;
  const y = (eps) =>
    top + ((height - top - bottom) * (high - Math.log10(Math.max(eps, 10 ** low)))) / (high - low);
  const parts = [];
  const text = (px, py, anchor, words, fill = "currentColor") =>
    parts.push(`<text x="${px}" y="${py}" text-anchor="${anchor}" fill="${fill}">${words}</text>`);
  for (let power = low; power <= high; power++) {
    const py = y(10 ** power);
    parts.push(`<line x1="${left}" x2="${width - right}" y1="${py}" y2="${py}" class="grid"/>`);
    if ((power - low) % Math.ceil((high - low) / 6) === 0) text(left - 8, py + 4, "end", Number(`1e${power}`).toLocaleString("en", { maximumFractionDigits: 9 }));
  }
  for (let power = 0; power <= last; power++) {
    const px = x(10 ** power);
    parts.push(`<line x1="${px}" x2="${px}" y1="${top}" y2="${height - bottom}" class="grid"/>`);
    text(px, height - bottom + 18, "middle", (10 ** power).toLocaleString("en"));
  }
  text((left + width - right) / 2, height - 6, "middle", "rounds");
  parts.push(`<text transform="translate(14 ${(top + height - bottom) / 2}) rotate(-90)" text-anchor="middle"
    fill="currentColor">epsilon at delta = ${setting.delta.toExponential()}</text>`);
  const labels = lines
    .map(([key, label, colour]) => ({ label, colour, at: y(points.at(-1)[key]) }))
    .sort((a, b) => a.at - b.at);
  labels.forEach((label, i) => {
    if (i > 0) label.at = Math.max(label.at, labels[i - 1].at + 16);
  });
  for (const [key, , colour, dash] of lines) {
    const path = points.map((p) => `${x(p.rounds).toFixed(1)},${y(p[key]).toFixed(1)}`).join(" ");
    parts.push(`<polyline points="${path}" stroke="${colour}" stroke-dasharray="${dash}" class="curve"/>`);
  }
  for (const { label, colour, at } of labels) text(width - right + 8, at + 4, "start", label, colour);
  const now = Calculator.answer(setting);
  if (setting.rounds <= points.at(-1).rounds && now.upper > 0) {
    parts.push(`<circle cx="${x(setting.rounds)}" cy="${y(now.upper)}" r="5" fill="#0072b2"/>`);
  }
  return `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="epsilon against rounds">${parts.join("")}</svg>`;
}

function show(root) {
  const status = root.querySelector("[role=status]");
  const [table, figure, below] = ["table", "figure", ".looked-up"].map((q) => root.querySelector(q));
  const fields = Object.fromEntries([...root.querySelectorAll("input")].map((i) => [i.name, i.value]));
  let setting;
  try {
    setting = Calculator.read(fields);
  } catch (error) {
    status.textContent = error.message;
    status.className = "error";
    for (const part of [table, figure, below]) part.innerHTML = "";
    return;
  }
  const found = Calculator.answer(setting);
  status.className = "";
  status.innerHTML = `epsilon is at most <strong data-epsilon="${found.upper}">${shown(found.upper)}</strong>
    at delta = ${setting.delta.toExponential()} after ${setting.rounds.toLocaleString("en")} round${setting.rounds > 1 ? "s" : ""}`;
  const rows = [
    ["certified, this package", found.upper],
    ["Renyi (RDP) accountant", found.renyi],
    ["no shuffler: local budgets composed", found.local],
  ];
  table.innerHTML =
    "<tr><th>analysis</th><th>epsilon</th><th>factor</th></tr>" +
    rows
      .map(([name, eps]) => {
        const factor = found.upper > 0 ? (eps / found.upper).toPrecision(3) : "";
        return `<tr><td>${name}</td><td>${shown(eps)}</td><td>${Number(factor) || ""}</td></tr>`;
      })
      .join("");
  figure.innerHTML = picture(setting);
  if (found.safe) {
    const { eps0, n, rate, rounds, delta } = Object.fromEntries(
      Object.entries(found.safe).map(([name, i]) => [name, Calculator.axes[name][i]]),
    );
    below.innerHTML = `Looked up at eps0 = ${eps0}, n = ${n.toLocaleString("en")}, rate = ${rate},
      rounds = ${rounds.toLocaleString("en")}, delta = ${delta.toExponential()}. For the worst randomizer, at exactly
      your settings, the truth lies between <span data-lower="${found.lower}">${shown(found.lower, false)}</span> and
      ${shown(found.upper)}.`;
  } else {
    below.textContent =
      "Outside of the table on the safe side, so this is what holds without a shuffler. The accountant may say much less.";
  }
}

const calculator = document.getElementById("epsilon-calculator");
calculator.addEventListener("input", () => show(calculator));
calculator.addEventListener("submit", (event) => event.preventDefault());
show(calculator);

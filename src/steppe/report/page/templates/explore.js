const SVG = "http://www.w3.org/2000/svg";
const section = document.querySelector(".explore");

function element(kind, attributes, text) {
  const made = document.createElementNS(SVG, kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const shown = (value, digits = 3) => value.toFixed(digits).replace("-", "−");
const bitsOf = (state) => state.toString(2).padStart(4, "0");

// Bars of a distribution over outlines of the target; marks and colours name the flat and the sharp modes.
function drawDistribution(box, distribution, target, color, marks, name) {
  const width = Math.max(box.clientWidth, 240);
  const [height, base, top] = [150, 112, 16];
  const axis = 26;
  const slot = (width - axis) / distribution.length;
  const highest = Math.max(0.2, ...distribution, ...target);
  const scale = (base - top) / highest;
  const svg = element("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img" });
  svg.setAttribute("aria-label", `${name}: ${distribution.map((mass, i) => `${bitsOf(i)} ${shown(mass)}`).join(", ")}`);
  for (let level = 0.1; level <= highest; level += 0.1) {
    const y = base - level * scale;
    svg.append(element("line", { x1: axis, x2: width, y1: y, y2: y, stroke: "#e3e1dc" }));
    svg.append(element("text", { x: 0, y: y + 3.5 }, level.toFixed(1)));
  }
  distribution.forEach((mass, i) => {
    const [left, wide] = [axis + i * slot + slot * 0.14, slot * 0.72];
    const middle = axis + i * slot + slot / 2;
    const mark = marks[bitsOf(i)];
    const bar = element("rect", { x: left, width: wide, y: base - mass * scale, height: mass * scale, fill: color });
    bar.append(element("title", {}, `${bitsOf(i)}: ${shown(mass, 4)}, target ${shown(target[i], 4)}`));
    const outline = { x: left - 1, width: wide + 2, y: base - target[i] * scale, height: target[i] * scale };
    svg.append(bar, element("rect", { ...outline, fill: "none", stroke: "#1c1e21", "stroke-width": 1.2 }));
    const label = element("text", { transform: `translate(${middle + 3.5} ${base + 32}) rotate(-90)` }, bitsOf(i));
    if (mark) {
      svg.append(element("text", { x: middle, y: base - Math.max(mass, target[i]) * scale - 4, "text-anchor": "middle", class: `sign ${mark.kind}` }, mark.sign));
      label.setAttribute("class", mark.kind);
    }
    svg.append(label);
  });
  svg.append(element("line", { x1: axis, x2: width, y1: base + 0.5, y2: base + 0.5, stroke: "#9a9a96" }));
  box.replaceChildren(svg);
}

function knobControl(knob, onChange) {
  const input = document.getElementById(`knob-${knob.key}`);
  const output = document.getElementById(`knob-${knob.key}-value`);
  const place = (value) => (knob.is_log ? Math.log10(value) : value);
  Object.assign(input, { min: place(knob.low), max: place(knob.high), step: 0.01, value: place(knob.start) });
  // The number shown is the number used.
  const read = () => Number((knob.is_log ? 10 ** input.value : Number(input.value)).toPrecision(3));
  const refresh = () => {
    output.textContent = String(read());
    output.dataset.value = read();
    input.setAttribute("aria-valuetext", `${knob.symbol} = ${read()}`);
  };
  const reset = () => {
    input.value = place(knob.start);
    refresh();
  };
  input.addEventListener("input", () => {
    refresh();
    onChange();
  });
  refresh();
  return { read, reset };
}

// DULA's step with EDULA's distribution, or why there is none.
function effectiveStep({ alpha, center, eta }) {
  if (4 * eta <= center) {
    return { warning: `No distribution: with 4η ≤ αₐ (${(4 * eta).toPrecision(3)} ≤ ${center}) the center runs away.` };
  }
  const stiffness = 1 / alpha - 1 / (4 * eta - center);
  const step = stiffness === 0 ? "∞" : (1 / stiffness).toPrecision(3).replace("-", "−");
  const warning = stiffness > 0 ? "" : "α_eff is not positive: no step of DULA has this distribution. The formula goes on, flips are more likely than not.";
  return { stiffness, warning, setting: `α_eff = ${step}` };
}

function lawsAt(logTable, knobs) {
  const effective = effectiveStep(knobs);
  const edula = effective.stiffness === undefined ? null : dulaDistribution(logTable, effective.stiffness);
  return {
    dula: { distribution: dulaDistribution(logTable, 1 / knobs.alpha), setting: `α = ${knobs.alpha}`, warning: "" },
    edula: { distribution: edula, setting: effective.setting ?? "", warning: effective.warning },
    tilt: { distribution: tiltedDistribution(logTable, knobs.lambda), setting: `λ = ${knobs.lambda}`, warning: "" },
  };
}

function findingOf(numbers) {
  const times = (distribution, kind) => `${(numbers[distribution][kind] / numbers.pi[kind]).toFixed(2)}`;
  const cost = (distribution) => shown(numbers[distribution].mean - numbers.pi.mean, 3);
  const sentence = (distribution, name) =>
    `${name} visits the flat modes ${times(distribution, "flat")} times and the sharp ones ${times(distribution, "sharp")} times as often, and E[U] changes by ${cost(distribution)}.`;
  return `Compared with π, ${sentence("dula", "DULA")} ${sentence("tilt", "The tilt")}`;
}

function explore(settings) {
  const target = normalised(settings.probabilities);
  const logTable = settings.probabilities.map(Math.log);
  const [flat, sharp] = [settings.flat, settings.sharp].map((modes) => modes.map((bits) => parseInt(bits, 2)));
  const marks = {};
  for (const bits of settings.flat) marks[bits] = { kind: "flat", sign: "▬" };
  for (const bits of settings.sharp) marks[bits] = { kind: "sharp", sign: "▲" };
  const numbersOf = (distribution) => ({
    flat: massOn(distribution, flat), sharp: massOn(distribution, sharp), mean: meanOf(distribution, logTable), tv: totalVariation(distribution, target),
  });

  function row(key, name, numbers) {
    const line = document.createElement("tr");
    line.dataset.distribution = key;
    if (key === "pi") line.className = "reference";
    line.append(Object.assign(document.createElement("td"), { textContent: name }));
    for (const kind of ["flat", "sharp", "mean", "tv"]) {
      const cell = Object.assign(document.createElement("td"), { className: "number" });
      cell.textContent = numbers ? shown(numbers[kind], 4) : "–";
      if (numbers) cell.dataset.value = numbers[kind];
      line.append(cell);
    }
    return line;
  }

  function update() {
    const knobs = Object.fromEntries(Object.entries(controls).map(([key, control]) => [key, control.read()]));
    const distributions = lawsAt(logTable, knobs);
    const numbers = { pi: numbersOf(target) };
    const rows = [row("pi", "π, the target", numbers.pi)];
    for (const [key, { distribution, setting, warning }] of Object.entries(distributions)) {
      const box = document.getElementById(`distribution-${key}`);
      const name = box.querySelector("b").textContent;
      box.querySelector(".distribution-setting").textContent = setting;
      box.querySelector(".distribution-warning").textContent = warning;
      if (distribution) drawDistribution(box.querySelector(".chart"), distribution, target, settings.colors[key], marks, name);
      else box.querySelector(".chart").replaceChildren();
      numbers[key] = distribution && numbersOf(distribution);
      rows.push(row(key, name, numbers[key]));
    }
    document.querySelector("#distribution-numbers tbody").replaceChildren(...rows);
    document.getElementById("distribution-finding").textContent = findingOf(numbers);
  }

  const controls = Object.fromEntries(settings.knobs.map((knob) => [knob.key, knobControl(knob, update)]));
  document.getElementById("knobs-reset").addEventListener("click", () => {
    for (const control of Object.values(controls)) control.reset();
    update();
  });
  section.hidden = false;
  update();
  let width = section.clientWidth;
  new ResizeObserver(() => {
    if (section.clientWidth === width) return; // its height changes by the drawing itself
    width = section.clientWidth;
    update();
  }).observe(section);
}

if (data.explore && section) explore(data.explore);

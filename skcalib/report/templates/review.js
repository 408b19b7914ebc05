"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const { classes, samples } = data;
const at = (id) => document.getElementById(id);
const IDLE = 60000; // a longer pause between two answers is no work
const SHOWN = 50; // classes of a search
const PITCH = 4.6; // width of a sample of the strip and the space after it, in rem
const BEYOND = 4; // samples of the strip that are drawn on either side of what is seen
// Up to nine classes have keys: digits that are names of classes, or else 1, 2, ...
const NAMED = classes.length <= 10 && classes.every(([name]) => /^\d$/.test(name));
const CLASS_KEYS = NAMED ? classes.map(([name]) => name) : classes.length <= 9 ? classes.map((_, i) => String(i + 1)) : [];
const KEYS = CLASS_KEYS.length ? { a: "accept", n: "none", "?": "unsure" } : { a: "accept", 1: "keep", 2: "other", 3: "none", "?": "unsure" };

// answers: by number of the sample, {how, to: class, asked}; past: [number, answer before] to undo.
let state = { answers: {}, past: [], times: [], now: 0 };
let kept = true, last = Date.now(), downloaded = true;

const quoted = (number) => `\u201c${classes[number][0]}\u201d`;
const isolated = (text) => `\u2068${text}\u2069`; // keeps its direction to itself
const counted = (number, one, many) => `${number} ${number === 1 ? one : many}`;
const suggests = (sample) => sample.suggested !== undefined && sample.suggested !== sample.given;
const isOpen = (answer) => !answer || (answer.how === "unsure" && answer.asked < 2);

function element(tag, parent, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const name in attributes) made.setAttribute(name, attributes[name]);
  parent.append(made);
  return made;
}

function store() {
  try { localStorage.setItem(data.key, JSON.stringify(state)); kept = true; } catch { kept = false; }
}

function restore() {
  try {
    const found = localStorage.getItem(data.key);
    if (found) state = JSON.parse(found);
  } catch { kept = false; }
}

// First those without an answer, then those that somebody was unsure of, once more.
function next() {
  const n = samples.length;
  for (const isNext of [(answer) => !answer, isOpen]) {
    for (let step = 1; step <= n; step++) if (isNext(state.answers[(state.now + step) % n])) return (state.now + step) % n;
  }
  return n;
}

function give(how, to) {
  const i = state.now, before = state.answers[i];
  if (i >= samples.length || (how === "accept" && !suggests(samples[i]))) return;
  if (how === "keep") to = samples[i].given;
  if (how === "accept") to = samples[i].suggested;
  if (to === samples[i].given) how = "keep";
  else if (suggests(samples[i]) && to === samples[i].suggested) how = "accept";
  const asked = how === "unsure" && before?.how === "unsure" ? 2 : 1;
  state.past.push([i, before ?? null]);
  state.answers[i] = { how, to, asked };
  state.times = [...state.times, Math.min(Date.now() - last, IDLE)].slice(-30);
  last = Date.now();
  downloaded = false;
  state.now = next();
  store();
  show();
  const answer = to === undefined ? how : isolated(classes[to][0]);
  at("announced").textContent = `Answered: ${answer}. ${at("done").hidden ? at("question").textContent : at("result").textContent}`;
}

function undo() {
  if (!state.past.length) return;
  const [i, before] = state.past.pop();
  if (before) state.answers[i] = before; else delete state.answers[i];
  state.now = i;
  store();
  show();
  at("announced").textContent = `Undone. ${at("question").textContent}`;
}

function go(i) {
  if (i < 0 || i >= samples.length) return;
  state.now = i;
  store();
  show();
}

function ask() {
  if (state.now >= samples.length) return;
  at("search").value = "";
  search();
  at("classes").showModal();
}

const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

function search() {
  const word = plain(at("search").value.trim());
  const place = (i) => plain(classes[i][0]).indexOf(word);
  const numbers = classes.map((_, i) => i).filter((i) => i !== samples[state.now].given && place(i) >= 0);
  numbers.sort((i, j) => (place(i) > 0) - (place(j) > 0) || i - j);
  at("found").replaceChildren();
  for (const i of numbers.slice(0, SHOWN)) {
    const button = element("button", at("found"), classes[i][0], { type: "button", dir: "auto" });
    button.onclick = () => { at("classes").close(); give("other", i); };
  }
  const rest = numbers.length - SHOWN;
  at("many").textContent = rest > 0 ? `and ${rest} more: type to search` : numbers.length ? "" : "No class has this in its name.";
}

function showSample(sample) {
  const box = at("shown");
  box.replaceChildren();
  if (sample.image) element("img", box, undefined, { src: sample.image, alt: `Sample ${sample.position}` });
  if (sample.text !== undefined) {
    element("div", box, sample.text, { class: "text", dir: "auto", tabindex: 0, role: "region", "aria-label": "Text" });
  }
  if (sample.row) {
    const table = element("table", element("div", box, undefined, { class: "row", tabindex: 0, role: "region", "aria-label": "Row" }));
    for (const [name, value] of sample.row) {
      const line = element("tr", table);
      element("th", line, name, { scope: "row", dir: "auto" });
      element("td", line, value, { dir: "auto" });
    }
  }
  if (sample.more) element("p", box, sample.more);
  at("name").replaceChildren(sample.name === undefined ? "" : "sample ");
  if (sample.name !== undefined) element("b", element("bdi", at("name")), sample.name);
  at("name").append(`${sample.name === undefined ? "row" : " · row"} ${sample.position}`);
}

function showQuestion(sample, answer) {
  at("question").textContent = `Is this ${isolated(quoted(sample.given))}?`;
  at("given").replaceChildren("Given label: ");
  element("bdi", at("given"), classes[sample.given][0]).style.fontWeight = 700;
  at("accept").hidden = !suggests(sample);
  if (suggests(sample)) at("accept").querySelector("b").textContent = isolated(quoted(sample.suggested));
  at("keep").querySelector("b").textContent = isolated(quoted(sample.given));
  for (const [i, button] of classButtons.entries()) {
    button.querySelector("small").textContent = i === sample.given ? "given label" : suggests(sample) && i === sample.suggested ? "suggested" : "";
    button.setAttribute("aria-pressed", answer?.to === i);
  }
  at("unsure").querySelector("span").textContent = answer?.how === "unsure" ? "still unsure: leave it out" : "unsure: ask me again at the end";
  for (const how of Object.values(KEYS)) at(how).setAttribute("aria-pressed", answer?.how === how);
  at("note").textContent = sample.drawn ? data.drawn : data.chosen;
}

// Only the samples that are seen have buttons, by their numbers.
const stripButtons = new Map();
const pitch = () => PITCH * parseFloat(getComputedStyle(document.documentElement).fontSize);

function drawStrip() {
  const from = Math.max(0, Math.floor(at("strip").scrollLeft / pitch()) - BEYOND);
  const to = Math.min(samples.length - 1, Math.ceil((at("strip").scrollLeft + at("strip").clientWidth) / pitch()) + BEYOND);
  for (const [i, button] of stripButtons) if (i < from || i > to) { button.remove(); stripButtons.delete(i); }
  for (let i = from; i <= to; i++) if (!stripButtons.has(i)) stripButtons.set(i, stripButton(i));
}

function stripButton(i) {
  const answer = state.answers[i];
  const done = answer ? (answer.how === "unsure" ? ", unsure" : ", answered") : "";
  const button = element("button", at("track"), undefined, { type: "button", "aria-label": `Sample ${i + 1} of ${samples.length}${done}` });
  button.style.insetInlineStart = `${i * PITCH}rem`;
  if (samples[i].image) element("img", button, undefined, { src: samples[i].image, alt: "" });
  else button.textContent = i + 1;
  if (answer) element("i", button, answer.how === "unsure" ? "?" : "✓", { "aria-hidden": true, class: answer.how === "unsure" ? "open" : "" });
  if (i === state.now) button.setAttribute("aria-current", "true");
  button.onclick = () => go(i);
  return button;
}

function showStrip() {
  at("track").replaceChildren();
  stripButtons.clear();
  at("strip").scrollLeft = (Math.min(state.now, samples.length - 1) + 0.5) * pitch() - at("strip").clientWidth / 2;
  drawStrip();
}

function showStatus() {
  const given = Object.values(state.answers), n = samples.length;
  const left = n - given.filter((answer) => !isOpen(answer)).length;
  const parts = [`${given.length} of ${n}`];
  if (state.times.length >= 5 && left) {
    const middle = [...state.times].sort((a, b) => a - b)[state.times.length >> 1];
    parts.push(`about ${counted(Math.max(1, Math.round(left * middle / 60000)), "minute", "minutes")} left`);
  }
  parts.push(kept ? "saved in this browser" : "this browser keeps nothing: download before you leave");
  at("status").textContent = parts.join(" · ");
  at("progress").max = n;
  at("progress").value = n - left;
  at("undo").disabled = !state.past.length;
  at("download").disabled = !given.length;
}

function show() {
  const done = state.now >= samples.length;
  at("work").hidden = done;
  at("done").hidden = !done;
  if (done) {
    const how = Object.values(state.answers).map((answer) => answer.how);
    const number = (...names) => how.filter((name) => names.includes(name)).length;
    at("result").textContent = samples.length === 1 ? "The label is checked." : `All ${samples.length} labels are checked.`;
    at("counts").textContent = `${number("keep")} kept, ${number("accept", "other")} changed, ${number("none")} none of the classes, ${number("unsure")} unsure.`;
  } else {
    showSample(samples[state.now]);
    showQuestion(samples[state.now], state.answers[state.now]);
  }
  showStrip();
  showStatus();
}

function table() {
  // A spreadsheet would take text that begins so for a formula; `read_checks` removes the sign.
  const neutral = (value) => /^'*[=+\-@]/.test(value) && !/^[+-]?\d*\.?\d+$/.test(value) ? `'${value}` : value;
  const cell = (value) => /[",;\t\r\n]|^\s|\s$/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
  const lines = [["position", "sample", "label", "true_label", "answer", "type"]];
  samples.forEach((sample, i) => {
    const answer = state.answers[i];
    if (!answer) return;
    const to = answer.to === undefined ? "" : classes[answer.to][0];
    lines.push([String(sample.position), sample.name ?? "", classes[sample.given][0], to, answer.how, classes[answer.to ?? sample.given][1]]);
  });
  return "\ufeff" + lines.map((line) => line.map(neutral).map(cell).join(",") + "\r\n").join("");
}

function download() {
  const address = URL.createObjectURL(new Blob([table()], { type: "text/csv;charset=utf-8" }));
  const link = element("a", document.body, "", { href: address, download: "checks.csv" });
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
  downloaded = true;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || at("classes").open) return;
  const key = event.key.toLowerCase();
  if (key === "z") undo();
  else if (key === "arrowleft") go(state.now - 1);
  else if (key === "arrowright") go(state.now + 1);
  else if (CLASS_KEYS.includes(key) && !event.repeat) give("other", CLASS_KEYS.indexOf(key));
  else if (KEYS[key] && !event.repeat && !at(KEYS[key]).hidden) KEYS[key] === "other" ? ask() : give(KEYS[key]);
  else return;
  event.preventDefault();
});
// One button for each class, before "none of them", or a search.
const classButtons = CLASS_KEYS.map((key, i) => {
  const button = element("button", at("classKeys"), undefined, { type: "button", "aria-keyshortcuts": key, "aria-pressed": false });
  element("kbd", button, key);
  element("b", element("span", button), isolated(classes[i][0]));
  element("small", button);
  button.onclick = () => give("other", i);
  return button;
});
if (classButtons.length) {
  at("keep").hidden = at("other").hidden = true;
  at("classKeys").className = classButtons.length > 4 ? "answers many" : "answers";
  at("none").querySelector("kbd").textContent = "N";
  at("none").setAttribute("aria-keyshortcuts", "n");
} else at("other").querySelector("small").textContent = `type to search ${classes.length} classes`;
at("track").style.width = `${samples.length * PITCH}rem`;
at("strip").addEventListener("scroll", drawStrip);
addEventListener("resize", drawStrip);
for (const how of Object.values(KEYS)) at(how).onclick = how === "other" ? ask : () => give(how);
at("undo").onclick = undo;
at("download").onclick = download;
at("close").onclick = () => at("classes").close();
at("search").oninput = search;
at("classes").addEventListener("keydown", (event) => {
  const buttons = [...at("found").children], i = buttons.indexOf(document.activeElement);
  if (event.key === "Enter" && document.activeElement === at("search")) buttons[0]?.click();
  else if (event.key === "ArrowDown") buttons[i + 1]?.focus();
  else if (event.key === "ArrowUp") (buttons[i - 1] ?? at("search")).focus();
  else return;
  event.preventDefault();
});
// Another tab with the same page.
addEventListener("storage", (event) => { if (event.key === data.key) { restore(); show(); } });
addEventListener("beforeunload", (event) => { if (!kept && !downloaded) event.preventDefault(); });
restore();
// Whether the browser keeps anything; what it may have kept is left as it is.
try { localStorage.setItem("skcalib-try", ""); localStorage.removeItem("skcalib-try"); } catch { kept = false; }
show();

// The page: the list of views, the view in sight, light and dark, and paper.

const data = JSON.parse(document.getElementById("contents").textContent);
const views = data.groups.flatMap((group) => group.views);
const sections = new Map();
const tabs = new Map();
const paper = window.matchMedia("print");
const darkness = window.matchMedia("(prefers-color-scheme: dark)");
let current = null;

function blocksOf(key) {
  return JSON.parse(document.getElementById(`data-${key}`).textContent);
}

// Views are read and made when they are first seen.
function fill(key) {
  const section = sections.get(key);
  if (section.dataset.filled) return;
  section.dataset.filled = "true";
  section.append(...blocksOf(key).map((block) => SHOW[block.type](block)));
}

function show(address, { focus } = {}) {
  const [key, ...further] = address.split("/");
  const rest = further.join("/");
  const chosen = sections.has(key) ? key : views[0].key;
  for (const [other, section] of sections) {
    section.hidden = other !== chosen;
    tabs.get(other).setAttribute("aria-selected", String(other === chosen));
    tabs.get(other).tabIndex = other === chosen ? 0 : -1;
  }
  fill(chosen);
  if (chosen !== current) document.getElementById("main").scrollTop = 0;
  if (chosen !== current) window.scrollTo(0, 0);
  current = chosen;
  for (const grid of grids) if (grid.holder.isConnected && grid.first === -1) grid.draw();
  const target = rest && document.getElementById(`finding-${rest}`);
  if (target) {
    target.scrollIntoView({ block: "start" });
    target.focus({ preventScroll: true });
  } else if (rest && findRow(sections.get(chosen), rest)) return;
  else if (focus) tabs.get(chosen).focus();
  tabs.get(chosen).scrollIntoView({ block: "nearest", inline: "nearest" });
}

// An address may name what to look for in the first table of a view.
function findRow(section, wanted) {
  const field = section.querySelector("input[type=search]");
  if (!field) return false;
  field.value = wanted;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  return true;
}

function address() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return "";
  }
}

// At once: the change of the address is told only later, when another key may have been pressed.
function go(key, options) {
  show(key, options);
  if (location.hash.slice(1) !== key) location.hash = key;
}

window.addEventListener("hashchange", () => {
  if (location.hash === "#main") return;
  show(address());
});

function tabPressed(event) {
  const keys = views.map((view) => view.key);
  const at = keys.indexOf(current);
  const to = {
    ArrowDown: at + 1,
    ArrowRight: at + 1,
    ArrowUp: at - 1,
    ArrowLeft: at - 1,
    Home: 0,
    End: keys.length - 1,
  }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  go(keys[(to + keys.length) % keys.length], { focus: true });
}

function makeTab(view) {
  const tab = element(
    "button",
    {
      type: "button",
      role: "tab",
      id: `tab-${view.key}`,
      class: view.empty ? "tab empty" : "tab",
      "aria-controls": `view-${view.key}`,
      onclick: () => go(view.key),
    },
    element("span", { text: view.title })
  );
  if (view.count) tab.append(element("span", { class: "tab-count", text: grouped(String(view.count)) }));
  tabs.set(view.key, tab);
  return tab;
}

function makeSection(view) {
  const section = element(
    "section",
    { id: `view-${view.key}`, class: "view", role: "tabpanel", "aria-labelledby": `tab-${view.key}`, hidden: true },
    element("h2", { text: view.title })
  );
  sections.set(view.key, section);
  return section;
}

// Light and dark.

function storedTheme() {
  try {
    return localStorage.getItem("pyrometer-theme");
  } catch {
    return null;
  }
}

function applyTheme() {
  const theme = paper.matches ? "light" : storedTheme() || (darkness.matches ? "dark" : "light");
  document.documentElement.dataset.theme = theme;
  for (const again of redrawing) again();
}

function toggleTheme() {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  try {
    localStorage.setItem("pyrometer-theme", theme);
  } catch {
    // Not kept then: a file opened from disk may have no storage.
  }
  document.documentElement.dataset.theme = theme;
  for (const again of redrawing) again();
}

// On paper: all views, light, each table whole.

function print(printing) {
  if (document.documentElement.classList.contains("printing") === printing) return;
  document.documentElement.classList.toggle("printing", printing);
  if (printing) {
    for (const view of views) fill(view.key);
    document.documentElement.dataset.theme = "light";
  }
  for (const grid of grids) if (grid.holder.isConnected) grid.print(printing);
  if (printing) for (const again of redrawing) again();
  else applyTheme();
}

function searchPressed(event) {
  const isTyping = event.target.closest("input, textarea, select");
  if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const field = sections.get(current).querySelector("input[type=search]");
  if (!field) return;
  event.preventDefault();
  field.focus();
}

function skip(event) {
  event.preventDefault();
  const main = document.getElementById("main");
  main.focus();
}

function start() {
  const { headline } = data;
  const list = element("div", { class: "tabs", role: "tablist", "aria-label": "Views", "aria-orientation": "vertical", onkeydown: tabPressed });
  for (const group of data.groups) {
    list.append(element("div", { class: "tab-group", role: "presentation", text: group.title }), ...group.views.map(makeTab));
  }
  const side = element(
    "nav",
    { class: "side", "aria-label": "Views" },
    element("div", { class: "brand" }, element("span", { class: "brand-mark", "aria-hidden": "true" }), element("span", { text: "Pyrometer" })),
    list,
    element("div", { class: "side-foot" }, button("Light / dark", { class: "button theme", onclick: toggleTheme, "aria-label": "Switch between light and dark" }))
  );
  const about = [headline.ending, headline.started, `pyrometer ${headline.version}`].filter(Boolean).join(" · ");
  const main = element(
    "main",
    { id: "main", tabindex: "-1" },
    element("header", { class: "top" }, element("h1", { text: headline.program, title: headline.program }), element("p", { class: "note", text: about })),
    ...views.map(makeSection)
  );
  document.getElementById("page").append(side, main);
  document.querySelector(".skip").addEventListener("click", skip);
  document.addEventListener("keydown", searchPressed);
  window.addEventListener("beforeprint", () => print(true));
  window.addEventListener("afterprint", () => print(false));
  paper.addEventListener("change", (event) => print(event.matches));
  darkness.addEventListener("change", applyTheme);
  applyTheme();
  show(address());
  if (paper.matches) print(true);
}

start();

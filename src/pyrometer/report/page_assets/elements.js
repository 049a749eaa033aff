// Elements, made with text only: nothing out of a run is ever markup.

const SVG = "http://www.w3.org/2000/svg";

function setAll(made, attributes) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") made.textContent = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  return made;
}

function element(tag, attributes, ...children) {
  const made = setAll(document.createElement(tag), attributes);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function drawn(tag, attributes, ...children) {
  const made = setAll(document.createElementNS(SVG, tag), attributes);
  made.append(...children);
  return made;
}

function button(text, attributes) {
  return element("button", { type: "button", class: "button", text, ...attributes });
}

// A choice of a few, as buttons of which one is pressed.
function choice(label, entries, chosen, choose) {
  const buttons = entries.map(([key, text]) =>
    button(text, {
      class: "segment",
      "aria-pressed": String(key === chosen),
      onclick: (event) => {
        for (const other of buttons) other.setAttribute("aria-pressed", String(other === event.currentTarget));
        choose(key);
      },
    })
  );
  return element("div", { class: "segments", role: "group", "aria-label": label }, ...buttons);
}

// What is drawn in the width there is, and again when that changes.
const redrawing = new Set();

function drawnToFit(holder, draw) {
  let width = 0;
  const fit = () => {
    const room = holder.clientWidth;
    if (!room || room === width) return;
    width = room;
    draw(width);
  };
  const again = () => {
    if (holder.isConnected) draw(holder.clientWidth || width || 960);
    else redrawing.delete(again);
  };
  new ResizeObserver(fit).observe(holder);
  redrawing.add(again);
  draw(holder.clientWidth || 960);
  return again;
}

function phaseColour(key) {
  return `var(--phase-${key})`;
}

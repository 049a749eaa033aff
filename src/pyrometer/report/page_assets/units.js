// Quantities as pyrometer/units.py writes them.

const UNKNOWN = "–";
const TIME_UNITS = [
  [1, "ns", 1e3], [1e3, "µs", 1e3], [1e6, "ms", 1e3], [1e9, "s", 1e4], [3.6e12, "h", 1e4], [8.64e13, "d", 1e4],
];
const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB"].map((unit, power) => [1024 ** power, unit, 1024]);
const COUNT_UNITS = [[1, "", 1e5], [1e3, "k", 1e3], [1e6, "M", 1e3], [1e9, "G", 1e3]];

// As Python rounds: what lies exactly between two goes to the even one.
function fixed(value, decimals) {
  const tie = Number.isInteger(value * 2 ** (decimals + 1)) && !Number.isInteger(value * 2 ** decimals);
  const scaled = value * 10 ** decimals;
  if (tie && Math.abs(scaled % 1) === 0.5) return (2 * Math.round(scaled / 2) / 10 ** decimals).toFixed(decimals);
  return value.toFixed(decimals);
}

function threeDigits(value) {
  const size = Math.abs(value);
  return fixed(value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

// The first unit whose limit the value stays below as written; the first one is whole.
function inFittingUnit(value, units, gap) {
  let number = fixed(value, 0);
  let unit = units[0][1];
  for (let at = 1; at < units.length && Math.abs(Number(number)) >= units[at - 1][2]; at++) {
    number = threeDigits(value / units[at][0]);
    unit = units[at][1];
  }
  return number + gap + unit;
}

function grouped(text) {
  const [whole, rest] = text.split(".");
  const spaced = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return rest === undefined ? spaced : spaced + "." + rest;
}

function writeShare(share) {
  const percentage = 100 * share;
  if (percentage > 0 && percentage < 0.05) return "<0.1";
  return percentage >= 999.95 ? ">999" : fixed(percentage, 1);
}

function writeFigure(figure) {
  return figure >= 99.95 ? grouped(fixed(figure, 0)) : fixed(figure, figure >= 9.995 ? 1 : 2);
}

function writeDigits(value) {
  if (!value) return "0";
  return Math.abs(value) < 0.9995 ? fixed(value, 3) : threeDigits(value);
}

const WRITE = {
  duration: (ns) => inFittingUnit(ns, TIME_UNITS, " "),
  bytes: (size) => inFittingUnit(size, BYTE_UNITS, " "),
  count: (count) => grouped(fixed(count, 0)),
  calls: (calls) => (calls >= 100 || Number.isInteger(calls) ? grouped(fixed(calls, 0)) : writeFigure(calls)),
  figure: writeFigure,
  digits: writeDigits,
  share: writeShare,
  flops: (count) => (count / 1e9 >= 999.5 ? ">999G" : inFittingUnit(count, COUNT_UNITS, "")),
  text: (text) => text,
};

function write(value, unit) {
  return value === null || value === undefined ? UNKNOWN : WRITE[unit](value);
}

// Files made of what the page holds.

function download(name, content) {
  const address = URL.createObjectURL(content);
  const link = element("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

// A cell that a spreadsheet would take for a formula begins with an apostrophe instead.
function csvCell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const safe = /^[=+\-@\t\r]/.test(value) && !/^-?[\d.,]+$/.test(value) ? "'" + value : value;
  return /[",\n\r]/.test(safe) ? '"' + safe.replaceAll('"', '""') + '"' : safe;
}

function csvOf(rows) {
  return rows.map((row) => row.map(csvCell).join(",")).join("\r\n") + "\r\n";
}

function downloadCsv(name, rows) {
  download(name + ".csv", new Blob([csvOf(rows)], { type: "text/csv" }));
}

async function downloadRun(name) {
  const text = document.getElementById("run-data").textContent;
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  if (typeof DecompressionStream === "undefined") {
    download(name + ".gz", new Blob([packed], { type: "application/gzip" }));
    return;
  }
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const bytes = await new Response(stream).arrayBuffer();
  download(name, new Blob([bytes], { type: "application/json" }));
}

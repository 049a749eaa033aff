// Findings, in full and in a line each.

function badge(text, kind) {
  return element("span", { class: `badge ${kind}`, text });
}

function priorityBadge(finding) {
  return badge(finding.priority, `priority-${finding.priority.toLowerCase()}`);
}

function fact(label, value) {
  return value ? element("div", {}, element("dt", { text: label }), element("dd", { text: value })) : null;
}

function listed(title, entries) {
  if (!entries.length) return null;
  return element("div", { class: "finding-part" }, element("h4", { text: title }), element("ul", { class: "bullets" }, ...entries));
}

function evidenceEntry(evidence) {
  const entry = element("li", { text: evidence.text + " " });
  entry.append(evidence.view ? element("a", { href: "#" + evidence.view, text: evidence.see }) : element("span", { class: "note", text: evidence.see }));
  return entry;
}

function remedyEntry(remedy) {
  const entry = element("li", { text: remedy.text });
  if (remedy.snippet) entry.append(showCode({ text: remedy.snippet }));
  return entry;
}

function showFinding(finding) {
  const facts = element(
    "dl",
    { class: "facts" },
    fact("takes", finding.takes),
    fact("gain", finding.gain || finding.gainClass),
    fact("class", finding.gain ? finding.gainClass : null),
    fact("how it is bounded", finding.basis),
    ...finding.place.map(([kind, name]) => fact(kind, name)),
    fact("effort", finding.effort),
    fact("risk", finding.risk)
  );
  const shown = element(
    "article",
    { class: "finding panel", id: `finding-${finding.rank}`, tabindex: "-1" },
    element(
      "header",
      {},
      element("span", { class: "rank", text: String(finding.rank) }),
      element("h3", { text: finding.what }),
      element("span", { class: "badges" }, priorityBadge(finding), badge(finding.kind, "kind"))
    ),
    facts,
    listed("Evidence", finding.evidence.map(evidenceEntry)),
    listed("Likely causes", finding.causes.map((cause) => element("li", { text: cause }))),
    listed("What to try", finding.remedies.map(remedyEntry))
  );
  if (finding.measure) shown.append(element("p", { class: "note", text: finding.measure }));
  return shown;
}

function showFindings(block) {
  const shown = element("div", { class: "findings" }, showVerdict({ text: block.verdict }));
  if (block.found.length) {
    shown.append(...block.found.map(showFinding));
    const more = block.notShown ? `${grouped(String(block.notShown))} more, with less to gain, ${block.notShown === 1 ? "is" : "are"} not shown. ` : "";
    shown.append(element("p", { class: "note", text: more + block.rule }));
  }
  const section = (title, none, entries, kind = "bullets") => {
    shown.append(element("h3", { class: "part", text: title }));
    shown.append(entries.length ? element("ul", { class: kind }, ...entries) : element("p", { class: "note", text: none }));
  };
  section("Efficient already", "Nothing stands out.", block.strengths.map((text) => element("li", { class: "good", text })));
  section("Looked for, and not there", "None of what was looked for is absent.", block.clear.map((text) => element("li", { text })), "chips");
  section(
    "Cannot be told",
    "Nothing: all of it could be looked for.",
    block.notLookedFor.map(({ kind, reason }) => element("li", {}, element("strong", { text: kind }), `: ${reason}`))
  );
  return shown;
}

function showTopFindings(block) {
  const rows = block.found.map((finding) =>
    element(
      "li",
      {},
      element(
        "a",
        { class: "top-finding", href: `#findings/${finding.rank}` },
        priorityBadge(finding),
        element("span", { class: "top-what", text: finding.what }),
        element("span", { class: "top-gain", text: finding.gain || finding.gainClass })
      )
    )
  );
  const list = element("ol", { class: "top-findings panel" }, ...rows);
  if (block.more) list.append(element("li", {}, element("a", { class: "top-finding more", href: "#findings", text: `${block.more} more` })));
  return list;
}

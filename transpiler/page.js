"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const WORDS = ["forward", "backward", "optimize", "lr", "rpc", "dist"];
const MANY = 60; // a part with more ops starts folded in a long program
const FEW = 3; // a part with no more ops has no head
const state = { program: "main", tab: "programs", hidden: new Set(), folded: new Map(),
  chosen: null, query: "", talking: false, lines: false, columns: new Set() };

function make(tag, cls, text) {
  const node = document.createElement(tag);
  if (cls) node.className = cls;
  if (text !== undefined) node.textContent = text;
  return node;
}
const bytes = (n) => n === null ? "size known at run time" : n.toLocaleString("en") + " bytes";

// every op by reference "role|program|block|op", and the messages at each
const ops = new Map(), peers = new Map();
for (const role of data.roles)
  for (const [which, blocks] of Object.entries(role.programs))
    blocks.forEach((block) => block.ops.forEach((op, at) => {
      op.ref = [role.name, which, block.idx, at].join("|");
      op.text = (op.type + " " + op.line + " " + (op.where || "")).toLowerCase();
      ops.set(op.ref, op);
    }));
for (const link of data.links)
  for (const [mine, other, out] of [[link.from, link.to, true], [link.to, link.from, false]]) {
    if (!peers.has(mine)) peers.set(mine, []);
    peers.get(mine).push({ ...link, other, out });
  }

// ---------------------------------------------------------------- columns
function parts(block) { // runs of ops with one role
  const found = [];
  block.ops.forEach((op, at) => {
    const last = found[found.length - 1];
    if (last && last.word === op.word) last.ops.push([op, at]);
    else found.push({ word: op.word, ops: [[op, at]] });
  });
  return found;
}
function visible(op) {
  return !state.hidden.has(op.word) && (!state.talking || peers.has(op.ref));
}
const hit = (op) => state.query !== "" && op.text.includes(state.query);

function opRow(op, at) {
  const row = make("li", "op " + op.word);
  row.tabIndex = -1;
  row.dataset.ref = op.ref;
  row.append(make("span", "n", at), make("span", "t", op.type));
  const told = (slots) => Object.values(slots).flat().filter((n) => !n.startsWith("__control"));
  const names = told(op.outs);
  row.append(make("span", "v", (names.length ? names : told(op.ins)).join(", ")));
  const links = peers.get(op.ref);
  if (links) {
    const mark = make("span", "k", "⇄ " + links.length);
    mark.title = links.length + " messages";
    row.append(mark);
  }
  row.title = op.line;
  if (hit(op)) row.classList.add("hit");
  return row;
}
function partNodes(part, key, long) {
  const shown = part.ops.filter(([op]) => visible(op));
  if (!shown.length) return [];
  const list = make("ol");
  if (part.ops.length <= FEW) {
    list.append(...shown.map(([op, at]) => opRow(op, at)));
    return [list];
  }
  const head = make("button", "part " + part.word);
  head.dataset.part = key;
  head.append(make("b", "", part.word), make("span", "", shown.length + (shown.length === 1 ? " op" : " ops")));
  const hits = shown.filter(([op]) => hit(op)).length;
  if (hits) head.append(make("span", "hits", hits));
  list.dataset.first = part.ops[0][0].ref;
  const open = state.folded.has(key) ? state.folded.get(key) : !(long && shown.length > MANY);
  const fill = () => { if (!list.childElementCount) list.append(...shown.map(([op, at]) => opRow(op, at))); };
  head.setAttribute("aria-expanded", open);
  list.hidden = !open;
  if (open) fill();
  head.addEventListener("click", () => {
    const now = list.hidden;
    if (now) fill();
    list.hidden = !now;
    head.setAttribute("aria-expanded", now);
    state.folded.set(key, now);
    draw();
  });
  return [head, list];
}
function column(role) {
  const col = make("section", "col");
  col.dataset.role = role.name;
  col.setAttribute("aria-label", role.name);
  const blocks = role.programs[state.program] || [];
  const total = blocks.reduce((n, b) => n + b.ops.length, 0);
  const title = make("h2", "", role.name);
  title.append(make("small", "", (role.endpoint ? role.endpoint + " · " : "") + total.toLocaleString("en") + " ops"));
  col.append(title);
  for (const block of blocks) {
    const box = make("div", "block");
    const body = parts(block).flatMap((part, i) =>
      partNodes(part, [role.name, state.program, block.idx, i].join("|"), total > 200));
    if (!body.length && block.ops.length) continue;
    box.append(make("h3", "", block.title), ...body);
    col.append(box);
  }
  return col;
}
function board() {
  const old = [$("main").scrollLeft, $("main").scrollTop];
  const columns = data.roles.filter((r) => state.columns.has(r.name)).map(column);
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "lines");
  svg.innerHTML = '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0.5 8 4 0 7.5z"/></marker></defs>';
  $("board").replaceChildren(...columns, svg);
  $("main").scrollTo({ left: old[0], top: old[1], behavior: "instant" });
  count();
  draw();
}
function count() {
  if (!state.query) return ($("count").textContent = "");
  const found = matches();
  $("count").textContent = found.length + (found.length === 1 ? " match" : " matches");
}
function matches() {
  return [...ops.values()].filter((op) => {
    const [role, which] = op.ref.split("|");
    return which === state.program && state.columns.has(role) && visible(op) && hit(op);
  });
}

// ---------------------------------------------------------------- lines
const rowOf = (ref) => $("board").querySelector(`.op[data-ref="${CSS.escape(ref)}"]`);
function anchor(ref) { // the op's row, or the folded part that it is in
  const row = rowOf(ref);
  if (row && row.offsetParent) return row;
  const [role, which, block, at] = ref.split("|");
  if (which !== state.program || !state.columns.has(role)) return null;
  const owner = data.roles.find((r) => r.name === role).programs[which].find((b) => b.idx === +block);
  let first = 0, index = 0;
  for (const part of parts(owner)) {
    if (+at < first + part.ops.length) break;
    first += part.ops.length;
    index += 1;
  }
  return $("board").querySelector(`.part[data-part="${CSS.escape([role, which, block, index].join("|"))}"]`);
}
function curve(a, b, cls, svg, base) {
  const p = a.getBoundingClientRect(), q = b.getBoundingClientRect();
  const right = q.left > p.left + 5, same = Math.abs(q.left - p.left) <= 5;
  const x1 = (right || same ? p.right : p.left) - base.left, y1 = p.top + p.height / 2 - base.top;
  const x2 = (right && !same ? q.left : q.right) - base.left, y2 = q.top + q.height / 2 - base.top;
  const bend = same ? 34 : Math.min(90, Math.max(36, Math.abs(x2 - x1) / 2)) * (right ? 1 : -1);
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 + (same ? bend : -bend)} ${y2} ${x2} ${y2}`);
  path.setAttribute("class", cls);
  path.setAttribute("marker-end", "url(#tip)");
  svg.append(path);
}
function draw(hover) {
  const svg = $("board").querySelector("svg");
  if (!svg || state.tab !== "programs") return;
  svg.querySelectorAll(":scope > path").forEach((p) => p.remove());
  $("board").querySelectorAll(".peer").forEach((n) => n.classList.remove("peer"));
  const base = $("board").getBoundingClientRect();
  svg.style.width = $("board").scrollWidth + "px";
  svg.style.height = $("board").scrollHeight + "px";
  const focus = new Set([state.chosen, hover].filter(Boolean));
  const bright = [];
  let left = 3000;
  for (const link of data.links) {
    const on = focus.has(link.from) || focus.has(link.to);
    if (!on && (!state.lines || left-- <= 0)) continue;
    const a = anchor(link.from), b = anchor(link.to);
    if (!a || !b) continue;
    if (on) bright.push([a, b, link.kind]);
    else curve(a, b, link.kind, svg, base);
  }
  for (const [a, b, kind] of bright) {
    a.classList.add("peer"); b.classList.add("peer");
    curve(a, b, kind + " on", svg, base);
  }
}

// ---------------------------------------------------------------- one op
function choose(ref, scroll) {
  $("board").querySelectorAll(".chosen").forEach((n) => n.classList.remove("chosen"));
  state.chosen = ref;
  if (ref) {
    const [role, which] = ref.split("|");
    let again = false;
    if (which !== state.program) { setProgram(which); again = true; }
    if (!state.columns.has(role)) { state.columns.add(role); chips(); again = true; }
    if (!visible(ops.get(ref))) { state.hidden.clear(); state.talking = false; chips(); again = true; }
    if (again) board();
    let row = rowOf(ref);
    if (!row || !row.offsetParent) {
      const head = anchor(ref);
      if (head) head.click();
      row = rowOf(ref);
    }
    details(); // first: it takes room from the board
    if (row) {
      row.classList.add("chosen");
      if (scroll) { row.focus({ preventScroll: true }); row.scrollIntoView({ block: "center", inline: "nearest" }); }
    }
  } else details();
  draw();
}
function nameButtons(slots) {
  const span = make("span");
  for (const [slot, names] of Object.entries(slots)) {
    if (!names.length) continue;
    span.append(make("span", "keys", slot + " "));
    for (const name of names) {
      const button = make("button", "var", name);
      button.title = "find every op with " + name;
      button.addEventListener("click", () => search(name));
      span.append(button, " ");
    }
  }
  return span.childNodes.length ? span : make("span", "keys", "none");
}
function details() {
  const panel = $("details");
  panel.hidden = !state.chosen;
  if (!state.chosen) return panel.replaceChildren();
  const op = ops.get(state.chosen), [role, which, block, at] = state.chosen.split("|");
  const title = make("h2", op.word);
  const name = make("span", "mono", op.type);
  name.style.color = "var(--c)";
  title.append(name, make("span", "where", `${role} · ${which} program · block ${block} · op ${at} · ${op.word}`));
  const close = make("button", "close", "close ✕");
  close.addEventListener("click", () => choose(null));
  title.append(close);
  const grid = make("div", "grid");
  const add = (label, node) => grid.append(make("span", "", label), node);
  add("reads", nameButtons(op.ins));
  add("writes", nameButtons(op.outs));
  const attrs = Object.entries(op.attrs);
  if (attrs.length) add("attributes", make("span", "mono", attrs.map(([k, v]) => `${k}: ${v}`).join("   ")));
  if (op.pair.length) add("parameter, gradient", nameButtons({ "": op.pair }));
  if (op.where) add("built at", make("span", "mono", op.where));
  const links = peers.get(op.ref);
  if (links) {
    const list = make("span");
    for (const link of links) {
      const [r, w, b, n] = link.other.split("|"), to = ops.get(link.other);
      const text = `${link.out ? "→" : "←"} ${r} ${+b ? "block " + b + " " : ""}op ${n} ${to.type}` +
        (w === which ? "" : ` (${w})`) + (link.kind === "barrier" ? "   barrier" : `   ${link.name}   ${bytes(link.size)}`);
      const jump = make("button", "jump " + link.kind, text);
      jump.addEventListener("click", () => choose(link.other, true));
      list.append(jump);
    }
    add("messages", list);
  }
  panel.replaceChildren(title, grid);
}

// ---------------------------------------------------------------- other tabs
function table(heads, rows) {
  const node = make("table"), top = make("tr");
  heads.forEach(([text, cls]) => top.append(make("th", cls, text)));
  const head = make("thead"), body = make("tbody");
  head.append(top);
  for (const cells of rows) {
    const row = make("tr");
    cells.forEach((c, i) => row.append(make("td", heads[i][1] === "num" ? "num" : heads[i][2] || "", c)));
    body.append(row);
  }
  node.append(head, body);
  const box = make("div", "scroll");
  box.append(node);
  return box;
}
const n = (x) => x.toLocaleString("en");
function bars(items) { // [label, segments [[title, size]], text]
  const node = make("div", "bars");
  const most = Math.max(1, ...items.map(([, s]) => s.reduce((t, [, v]) => t + v, 0)));
  for (const [label, segments, text] of items) {
    const bar = make("div", "bar");
    segments.forEach(([title, size], i) => {
      const piece = make("i");
      piece.style.width = (100 * size / most) + "%";
      piece.style.background = `color-mix(in oklab, var(--optimize) ${92 - 38 * (i % 2)}%, var(--forward))`;
      piece.title = title + ": " + bytes(size);
      bar.append(piece);
    });
    node.append(make("span", "mono", label), bar, make("span", "mono", text));
  }
  return node;
}
function serversPage() {
  const page = $("servers");
  if (data.servers.length) {
    page.append(make("h2", "", "What each server holds"),
      make("p", "", `Each piece of a bar is one block of a parameter. Balance ${data.balance.toFixed(3)}: the fullest server over the mean (1 is even).`),
      bars(data.servers.map((s) => [s.name, s.blocks.map((b) => [b.name, b.bytes]), bytes(s.held)])),
      table([["server"], ["block", "", "name"], ["rows", "num"], ["of parameter", "", "name"], ["shape", "", "name"], ["bytes", "num"]],
        data.servers.flatMap((s) => s.blocks.map((b) => [s.name, b.name, b.rows, b.param, b.shape, n(b.bytes)]))));
  }
  page.append(make("h2", "", "Bytes of one step"),
    make("p", "", data.notes.join(" ")),
    bars(data.cost.map((c) => [c.name, [["sent", c.sent], ["received", c.received]], `${n(c.sent)} sent, ${n(c.received)} received`])),
    table([["role"], ["sent", "num"], ["received", "num"], ["of which arrays", "num"], ["messages", "num"]],
      data.cost.map((c) => [c.name, n(c.sent), n(c.received), n(c.payload), n(c.messages)])));
}
function messagesPage() {
  const page = $("messages"), query = state.query;
  const place = (ref) => { const [r, w, b, at] = ref.split("|"); return `${r} ${w}${+b ? " block " + b : ""} op ${at} ${ops.get(ref).type}`; };
  const wanted = data.links.filter((l) => !query || (l.name + " " + place(l.from) + " " + place(l.to)).toLowerCase().includes(query));
  const box = table([["kind"], ["what", "", "name"], ["from", "", "name"], ["to", "", "name"], ["bytes", "num"]],
    wanted.slice(0, 2000).map((l) => [l.kind, l.name, place(l.from), place(l.to), l.size === null ? "" : n(l.size)]));
  box.querySelectorAll("tbody tr").forEach((row, i) => {
    row.tabIndex = 0; row.style.cursor = "pointer";
    const go = () => { setTab("programs"); choose(wanted[i].from, true); };
    row.addEventListener("click", go);
    row.addEventListener("keydown", (e) => { if (e.key === "Enter") go(); });
  });
  box.style.maxHeight = "none";
  page.replaceChildren(make("h2", "", `${n(wanted.length)} messages`),
    make("p", "", "Those of the startup programs, then those of a step. Choose one to see both its ends."), box);
}
function marked(text, other) { // words that the other line lacks
  const span = make("span"), known = new Set(other.split(/([\s,()=\[\]{}]+)/));
  for (const word of text.split(/([\s,()=\[\]{}]+)/))
    span.append(known.has(word) ? word : make("mark", "", word));
  return span;
}
function diffPage() {
  const page = $("diff");
  page.replaceChildren();
  for (const [title, rows] of data.diff) {
    page.append(make("h2", "", title), make("p", "", `${rows.filter((r) => r[0] === "+").length} ops came, ${rows.filter((r) => r[0] === "-").length} went, ${rows.filter((r) => r[0] === "~").length} changed.`));
    const box = make("div", "diff");
    const line = (tag, text, word, other) => {
      const node = make("div", word + (tag === "+" ? " add" : tag === "-" ? " drop" : ""));
      node.append(make("span", "", tag), other === undefined ? make("span", "", text) : marked(text, other));
      return node;
    };
    let quiet = [];
    const flush = (end) => {
      const keep = 2, hidden = quiet.length > 2 * keep + 3 ? quiet.splice(end === "first" ? 0 : keep, quiet.length - keep - (end ? 0 : keep)) : [];
      const at = end === "first" ? 0 : keep;
      quiet.forEach((node, i) => { if (i === at && hidden.length) box.append(folded(hidden)); box.append(node); });
      if (hidden.length && quiet.length <= at) box.append(folded(hidden));
      quiet = [];
    };
    const folded = (nodes) => {
      const button = make("button", "", `⋯ ${nodes.length} ops as before`);
      button.addEventListener("click", () => button.replaceWith(...nodes));
      return button;
    };
    let first = true;
    for (const [tag, text, word, newer] of rows) {
      if (tag === " ") { quiet.push(line(" ", text, word)); continue; }
      flush(first ? "first" : undefined);
      first = false;
      if (tag === "~") box.append(line("-", text, word, newer), line("+", newer, word, text));
      else box.append(line(tag, text, word));
    }
    flush("last");
    page.append(box);
  }
}

// ---------------------------------------------------------------- controls
function setTab(name) {
  state.tab = name;
  for (const tab of $("tabs").children) {
    const on = tab.dataset.tab === name;
    tab.setAttribute("aria-selected", on);
    tab.tabIndex = on ? 0 : -1;
    $(tab.dataset.tab).hidden = !on;
  }
  $("boardtools").hidden = name !== "programs";
  if (name === "messages") messagesPage();
  if (name === "programs") draw();
  $("details").hidden = name !== "programs" || !state.chosen;
}
function setProgram(which) {
  state.program = which;
  for (const button of $("which").children) button.setAttribute("aria-pressed", button.dataset.which === which);
}
function search(text) {
  $("search").value = text;
  state.query = text.trim().toLowerCase();
  if (state.tab === "messages") messagesPage(); else board();
}
function chip(parent, text, cls, on, act) {
  const button = make("button", "chip " + cls, text);
  button.setAttribute("aria-pressed", on);
  button.addEventListener("click", act);
  parent.append(button);
}
function chips() {
  const bar = $("chips");
  bar.replaceChildren();
  const used = new Set([...ops.values()].map((op) => op.word));
  const flip = (set, value) => { set.has(value) ? set.delete(value) : set.add(value); chips(); board(); };
  WORDS.filter((w) => used.has(w)).forEach((w) => chip(bar, w, w, !state.hidden.has(w), () => flip(state.hidden, w)));
  chip(bar, "only ops with messages", "switch", state.talking, () => { state.talking = !state.talking; chips(); board(); });
  chip(bar, "all lines", "switch", state.lines, () => { state.lines = !state.lines; chips(); draw(); });
  const roles = $("roles");
  roles.replaceChildren(make("span", "keys", "roles"));
  data.roles.forEach((r) => chip(roles, r.name, "plain", state.columns.has(r.name), () => flip(state.columns, r.name)));
}
function step(way) { // next or previous match
  const found = matches();
  if (!found.length) return;
  const at = found.findIndex((op) => op.ref === state.chosen);
  choose(found[(at + way + found.length) % found.length].ref, true);
}
function walk(key) {
  const rows = [...$("board").querySelectorAll(".op, .part")].filter((r) => r.offsetParent);
  const here = document.activeElement.closest(".op, .part");
  if (!here) return rows[0] && rows[0].focus();
  if (key === "ArrowDown" || key === "ArrowUp") {
    const own = rows.filter((r) => r.closest(".col") === here.closest(".col"));
    const next = own[own.indexOf(here) + (key === "ArrowDown" ? 1 : -1)];
    if (next) { next.focus(); if (next.dataset.ref && state.chosen) choose(next.dataset.ref); }
  } else {
    const cols = [...$("board").querySelectorAll(".col")], top = here.getBoundingClientRect().top;
    const next = cols[cols.indexOf(here.closest(".col")) + (key === "ArrowRight" ? 1 : -1)];
    const near = next && rows.filter((r) => r.closest(".col") === next)
      .sort((a, b) => Math.abs(a.getBoundingClientRect().top - top) - Math.abs(b.getBoundingClientRect().top - top))[0];
    if (near) near.focus();
  }
}
function listen() {
  $("tabs").addEventListener("click", (e) => { if (e.target.dataset.tab) setTab(e.target.dataset.tab); });
  $("tabs").addEventListener("keydown", (e) => {
    if (e.key !== "ArrowRight" && e.key !== "ArrowLeft") return;
    const all = [...$("tabs").children], at = all.findIndex((t) => t.dataset.tab === state.tab);
    const next = all[(at + (e.key === "ArrowRight" ? 1 : -1) + all.length) % all.length];
    setTab(next.dataset.tab); next.focus(); e.stopPropagation();
  });
  $("which").addEventListener("click", (e) => { if (e.target.dataset.which) { setProgram(e.target.dataset.which); board(); } });
  let wait;
  $("search").addEventListener("input", (e) => { clearTimeout(wait); wait = setTimeout(() => search(e.target.value), 120); });
  $("search").addEventListener("keydown", (e) => {
    if (e.key === "Enter") { search(e.target.value); step(e.shiftKey ? -1 : 1); }
    if (e.key === "Escape") { search(""); e.target.blur(); }
  });
  const rowAt = (e) => e.target.closest && e.target.closest(".op");
  $("board").addEventListener("click", (e) => { const row = rowAt(e); if (row) choose(row.dataset.ref === state.chosen ? null : row.dataset.ref); });
  $("board").addEventListener("mouseover", (e) => { const row = rowAt(e); draw(row && row.dataset.ref); });
  $("board").addEventListener("mouseleave", () => draw());
  $("board").addEventListener("focusin", (e) => { const row = rowAt(e); if (row) draw(row.dataset.ref); });
  $("theme").addEventListener("click", () => {
    const dark = getComputedStyle(document.documentElement).colorScheme === "dark" ||
      (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
    document.documentElement.dataset.theme = dark ? "light" : "dark";
  });
  addEventListener("resize", () => draw());
  addEventListener("keydown", (e) => {
    if (e.target.tagName === "INPUT" || e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === "/") { e.preventDefault(); $("search").focus(); $("search").select(); }
    else if (e.key === "Escape") choose(null);
    else if (e.key === "n" || e.key === "N") step(e.key === "n" ? 1 : -1);
    else if (state.tab === "programs" && e.key.startsWith("Arrow")) { e.preventDefault(); walk(e.key); }
    else if (e.key === "Enter" && e.target.dataset && e.target.dataset.ref) choose(e.target.dataset.ref);
    else if (e.key === "g" && state.chosen && peers.has(state.chosen)) choose(peers.get(state.chosen)[0].other, true);
  });
}
state.columns = new Set(data.shown);
chips();
serversPage();
diffPage();
listen();
board();
const asked = new URLSearchParams(location.hash.slice(1)); // #tab=diff&op=trainer-0|main|0|3&find=fc_0
if (asked.get("theme")) document.documentElement.dataset.theme = asked.get("theme");
if (asked.get("find")) search(asked.get("find"));
if (asked.get("lines")) { state.lines = true; chips(); }
setTab(asked.get("tab") || "programs");
if (asked.get("op") && ops.has(asked.get("op"))) choose(asked.get("op"), true);
document.documentElement.dataset.ready = "yes";

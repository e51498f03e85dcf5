// Draws the page of a crawl, live or saved as a file with its data inside.  Names, titles and messages come from the web: they become text, never markup.
"use strict";

const EVERY_MS = 3000; // how often the status is read anew
const TURNS = 10; // of so many times, curves, hosts and statements are read once
const SAVED_PAGE = 100; // hosts on a page of a saved list
const SMOOTH_S = 60; // running time over which a point of a curve is averaged
const byId = (id) => document.getElementById(id);
const saved = JSON.parse(byId("saved")?.textContent ?? "null"); // null: the crawl is asked
const state = { status: null, curves: null, span: "hours", known: false, opened: "", watch: null, hasFailed: false,
  hosts: { search: "", order: "words", rising: false, page: 0, pages: 1 } };

// -- making elements

function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in element) element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

function draw(name, attributes, text = "") {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.textContent = text;
  return element;
}

const shown = new Map(); // place -> what it shows, so that what has not changed stays as it is

function isShown(place, told) {
  const text = JSON.stringify(told);
  const same = shown.get(place) === text;
  shown.set(place, text);
  return same;
}

function table(place, columns, rows, label) {
  if (isShown(place, rows)) return;
  const isWide = columns.length > 4; // on a phone each row is a block then
  const cell = (value, at) => make("td", { className: typeof value === "number" ? "n" : value.length > 24 ? "long" : "",
    ...(isWide && at ? { "data-label": columns[at] } : {}) }, typeof value === "number" ? number(value) : value);
  const head = make("tr", {}, ...columns.map((name, at) =>
    make("th", { scope: "col", className: rows.length && typeof rows[0][at] === "number" ? "n" : "" }, name)));
  place.replaceChildren(rows.length
    ? make("table", { "aria-label": label, className: isWide ? "cards" : "" }, make("thead", {}, head),
      make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map(cell)))))
    : make("p", { className: "note" }, "None yet."));
}

// -- words and numbers

function number(value) {
  const size = Math.abs(value);
  const digits = Number.isInteger(value) || size >= 100 ? 0 : size >= 1 ? 2 : 4;
  return value.toLocaleString("en", { minimumFractionDigits: digits && 1, maximumFractionDigits: digits });
}

function bytes(value) {
  const [unit, name] = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1, "kB"]].find(([unit]) => value >= unit) || [1, "kB"];
  return `${number(name === "kB" ? value / 1e3 : value / unit)} ${name}`;
}

function duration(seconds) {
  const parts = [[Math.floor(seconds / 86400), "d"], [Math.floor(seconds / 3600) % 24, "h"], [Math.floor(seconds / 60) % 60, "min"]];
  return parts.filter(([n]) => n).slice(0, 2).map(([n, unit]) => `${number(n)} ${unit}`).join(" ") || `${Math.round(seconds)} s`;
}

const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = (seconds) => new Date(seconds * 1000).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });

// -- what is asked for

async function request(path, more = {}) {
  const token = sessionStorage.getItem("token"); // of this tab alone
  const answer = await fetch(path, { ...more, headers: token ? { "X-Spiderling": encodeURIComponent(token) } : {} });
  if (answer.status === 401) {
    lock();
    throw Object.assign(new Error(token ? "This is not the token of this crawl." : "The token of the crawl is needed: see Controls."), { isLocked: true });
  }
  return answer;
}

async function ask(path, body) {
  const answer = await request(path, body === undefined ? {} : { method: "POST", body: JSON.stringify(body) });
  const text = await answer.text();
  let told = {};
  try { told = JSON.parse(text); } catch { told = { error: text.trim() }; }
  if (!answer.ok) throw new Error(told.error || `The crawl answered ${answer.status}.`);
  return told;
}

async function tell(place, promise) {
  try {
    place.textContent = (await promise).said || "";
  } catch (error) {
    place.textContent = error instanceof TypeError ? "The crawl does not answer." : error.message;
  }
}

// -- tiles

function tiles(status) {
  const { totals, lately, overall, urls } = status;
  const budgets = status.budgets.map((one) => `${one.total.replace("_", " ")}: ${number(one.reached)} of ${number(one.limit)}`).join("; ");
  const [often, lines] = Object.entries(status.bottlenecks)[0] ?? ["", 0];
  const [bound, ...why] = (status.bottleneck || (lines ? `${often} (most often` : "")).split(" (");
  return [
    ["Words", number(totals.words || 0), `${number(totals.documents || 0)} documents`],
    ["Words an hour", short(lately.words_per_hour), `${short(overall.words_per_hour)} overall`],
    ["Pages a second", number(lately.pages_per_s), `${number(totals.pages || 0)} pages`],
    ["MB a second down", short(lately.downloaded_bytes_per_s / 1e6), `${bytes(totals.downloaded_bytes || 0)} in all`],
    ["Yield rate", number(lately.yield_rate), `${number(overall.yield_rate)} overall, ${bytes(totals.kept_bytes || 0)} kept`],
    ["Time left", status.left_s === null ? "open" : duration(status.left_s), budgets ? `by ${budgets}` : "no budget is set"],
    ["Hosts at work", number(status.hosts_at_work), `${number(urls.waiting)} URLs wait, ${number(urls.in_transit)} in transit`],
    ["Running time", duration(totals.time_s || 0), `begun ${day(status.created)}`],
    ["Bottleneck", bound || "unknown", why.join(" (").replace(/\)$/, ""), "wide"],
  ];
}

function showTiles(status) {
  const list = byId("tiles");
  const wanted = tiles(status);
  if (list.children.length !== wanted.length) {
    list.replaceChildren(...wanted.map(([label, , , kind]) => make("div", { className: kind || "" }, make("dt", {}, label),
      make("dd", { className: "value" }), make("dd", { className: "more" }))));
  }
  wanted.forEach(([, value, more], at) => {
    const [, shown, note] = list.children[at].children;
    if (shown.textContent !== value) shown.textContent = value;
    if (note.textContent !== more) note.textContent = more;
  });
}

// -- the status

function show(status) {
  state.status = status;
  document.title = `${number(status.totals.words || 0)} words, ${status.lang} - Spiderling`;
  byId("lang").textContent = status.lang;
  badge(status.phase, status.phase);
  byId("where").textContent = `${status.directory}${status.shards.length ? ` (${number(status.shards.length)} shards)` : ""}, ${status.process || "no process"}, version ${status.program}, strategy ${status.strategy}; ${saved ? day(status.made) : clock(status.made)}${status.note ? `; ${status.note}` : ""}${status.trouble ? `; network: ${status.trouble}` : ""}`;
  showTiles(status);
  byId("states").textContent = Object.entries(status.hosts).filter(([, n]) => n).map(([name, n]) => `${number(n)} ${name}`).join(", ");
  const ends = (list) => list.map((end) => [end.reason, end.urls, end.help]);
  table(byId("ends-table"), ["reason", "URLs", "that is"], ends(status.ends), "How URLs ended");
  table(byId("refusals-table"), ["reason", "URLs", "that is"], ends(status.refusals), "Left out because sites ask for it");
  table(byId("mentions-table"), ["reason", "links", "that is"], ends(status.mentions), "Links not followed");
  byId("revisits").hidden = !status.revisits;
  if (status.revisits) table(byId("revisits-table"), ["what", "is"], revisits(status.revisits), "Revisits of known pages");
  table(byId("languages-table"), ["language", "documents", "words"], status.languages.map((one) => [one.code, one.documents, one.words]), "Languages");
  if (status.statements) table(byId("statements-table"), ["for the front page", "origins"], Object.entries(status.statements), "What sites say");
  if (!isShown(byId("newest-list"), status.newest)) byId("newest-list").replaceChildren(...status.newest.map((text) => make("li", {}, make("time", {}, clock(text.time)),
    make("strong", {}, text.title || "(without a title)"), ` ${text.language}, ${number(text.words)} words`,
    make("br"), make("span", { className: "note" }, text.url), make("br"), make("span", { lang: text.language }, text.begins))));
  lines(byId("warnings-list"), status.warnings);
  lines(byId("events-list"), status.events);
  if (!saved) byId("pause").textContent = status.phase === "paused" ? "Resume" : "Pause";
  document.body.dataset.made = status.made;
}

function revisits(one) {
  return [
    ["recrawled", number(one.recrawled)], ["since", day(one.since)], ["until", one.until === null ? "it is stopped" : day(one.until)],
    ["revisits", number(one.revisits)], ["unchanged (304)", number(one.unchanged)],
    ["with something new", `${number(one.new)}: ${number(one.words)} words, ${number(one.links)} links`],
    ["gone", number(one.gone)], ["opted out", number(one.opted_out)],
  ];
}

function lines(place, told) {
  if (isShown(place, told)) return;
  place.replaceChildren(...(told.length ? told : [null]).map((line) => line
    ? make("li", { className: line.level }, make("time", {}, day(line.time)), line.what) : make("li", { className: "note" }, "None.")));
}

function badge(text, kind) {
  const place = byId("phase");
  if (place.textContent === text) return;
  place.textContent = text;
  place.className = `badge ${kind}`;
}

// -- curves

const CHARTS = [
  ["Words an hour", (a, b, s) => (b.words - a.words) * 3600 / s],
  ["Pages a second", (a, b, s) => (b.pages - a.pages) / s],
  ["MB a second down", (a, b, s) => (b.downloaded_bytes - a.downloaded_bytes) / 1e6 / s],
  ["Yield rate", (a, b) => (b.kept_bytes - a.kept_bytes) / Math.max(1, b.downloaded_bytes - a.downloaded_bytes)],
  ["Words kept", (a, b) => b.words],
  ["Hosts at work", (a, b) => b.at_work],
];

function points() {
  const columns = state.curves[state.span];
  const rows = columns.time.map((time, at) => Object.fromEntries(Object.keys(columns).map((name) => [name, columns[name][at]])));
  const zero = Object.fromEntries(Object.keys(columns).map((name) => [name, 0]));
  let from = 0;
  return rows.map((row, at) => {
    while (from + 1 < at && row.time_s - rows[from + 1].time_s >= SMOOTH_S) from += 1;
    const before = at ? rows[from] : state.span === "whole" ? zero : row;
    const seconds = row.time_s - before.time_s;
    return { time: row.time, values: CHARTS.map(([, value]) => seconds > 0 ? value(before, row, seconds) : null) };
  });
}

function showCurves() {
  if (!state.curves) return;
  const all = points();
  const figures = CHARTS.map(([title]) => make("figure", {}, make("figcaption", {}, make("strong", {}, title))));
  byId("charts").replaceChildren(...figures); // first, so that their widths are known
  figures.forEach((figure, at) =>
    chart(figure, CHARTS[at][0], all.filter((point) => point.values[at] !== null).map((point) => [point.time, point.values[at]])));
  showCoverage();
  const step = Math.ceil(all.length / 25) || 1;
  table(byId("points"), ["time", ...CHARTS.map(([title]) => title)],
    all.filter((point, at) => (all.length - 1 - at) % step === 0 && point.values[0] !== null).reverse().map((point) => [day(point.time), ...point.values]), "Curves");
}

function showCoverage() { // of the text on the web, with the bounds of the estimate
  const kind = ["words", "pages", "hosts"].find((one) => state.status?.coverage.at(-1)?.[one]);
  if (!kind) return;
  const figure = make("figure", {}, make("figcaption", {}, make("strong", {}, `Share of the ${kind}`)));
  byId("charts").append(figure);
  chart(figure, `Share of the ${kind}`, state.status.coverage.filter((point) => point[kind]).map((point) => [point.time, ...point[kind]]));
}

// *values*: time, value and, if there is a band, its bounds
function chart(figure, title, values) {
  const read = make("span", {}, values.length ? `${saved ? "last" : "now"} ${number(values.at(-1)[1])}` : "nothing yet");
  figure.firstChild.append(read);
  const width = Math.max(200, figure.clientWidth);
  const height = 144;
  const left = 48;
  const bottom = 20;
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  figure.append(svg);
  if (values.length < 2) { svg.setAttribute("aria-label", `${title}: too few points yet`); return; }
  const first = values[0][0];
  const span = Math.max(1, values.at(-1)[0] - first);
  const most = Math.max(...values.map(([, value, , high = value]) => high)) || 1;
  svg.setAttribute("aria-label", `${title} from ${day(first)} to ${day(values.at(-1)[0])}: last ${number(values.at(-1)[1])}, most ${number(most)}`);
  const x = (time) => left + (width - left - 6) * (time - first) / span;
  const y = (value) => 8 + (height - bottom - 8) * (1 - value / most);
  for (const value of [0, most / 2, most]) {
    svg.append(draw("line", { class: "grid", x1: left, x2: width, y1: y(value), y2: y(value) }));
    svg.append(draw("text", { x: left - 5, y: y(value) + 4, "text-anchor": "end" }, short(value)));
  }
  svg.append(draw("text", { x: left, y: height - 4 }, span > 86400 ? day(first) : clock(first)));
  svg.append(draw("text", { x: width - 2, y: height - 4, "text-anchor": "end" }, span > 86400 ? day(first + span) : clock(first + span)));
  const gap = Math.max(60, 4 * span / values.length); // a pause is not drawn as a curve
  let path = "";
  values.forEach(([time, value], at) => {
    path += `${at && time - values[at - 1][0] < gap ? "L" : "M"}${x(time).toFixed(1)} ${y(value).toFixed(1)}`;
  });
  svg.append(draw("path", { class: "curve", d: path }));
  if (values[0].length > 2) {
    const corners = [...values.map(([time, , low]) => [time, low]), ...values.map(([time, , , high]) => [time, high]).reverse()];
    svg.append(draw("polygon", { class: "band", points: corners.map(([time, value]) => `${x(time).toFixed(1)},${y(value).toFixed(1)}`).join(" ") }));
  }
  const mark = draw("line", { class: "mark", y1: 0, y2: height - bottom, visibility: "hidden" });
  svg.append(mark);
  svg.addEventListener("pointermove", (event) => {
    const time = first + span * ((event.offsetX / svg.clientWidth) * width - left) / (width - left - 6);
    const near = values.reduce((best, point) => Math.abs(point[0] - time) < Math.abs(best[0] - time) ? point : best);
    mark.setAttribute("x1", x(near[0]));
    mark.setAttribute("x2", x(near[0]));
    mark.setAttribute("visibility", "visible");
    read.textContent = `${day(near[0])}: ${number(near[1])}`;
  });
  svg.addEventListener("pointerleave", () => {
    mark.setAttribute("visibility", "hidden");
    read.textContent = `${saved ? "last" : "now"} ${number(values.at(-1)[1])}`;
  });
}

const short = (value) => value >= 1000 ? value.toLocaleString("en", { notation: "compact", maximumFractionDigits: 1 })
  : Number(value.toPrecision(3)).toLocaleString("en");

// -- hosts

const COLUMNS = [["name", "host"], ["state", "state"], ["words", "words"], ["documents", "documents"], ["pages", "pages"],
  ["downloaded_bytes", "MB down"], ["kept_bytes", "MB kept"], ["yield_rate", "yield rate"], ["waiting", "wait"], ["parked", "parked"], ["distance", "distance"]];

function showHostHead() {
  const { order, rising } = state.hosts;
  document.querySelector("#host-table thead").replaceChildren(make("tr", {}, ...COLUMNS.map(([name, label]) => {
    const button = make("button", { type: "button" }, label);
    button.addEventListener("click", () => {
      Object.assign(state.hosts, { order: name, rising: name === order ? !rising : name === "name" || name === "state", page: 0 });
      showHostHead();
      document.querySelector(`#host-table th:nth-child(${COLUMNS.findIndex(([one]) => one === name) + 1}) button`).focus();
      readHosts();
    });
    return make("th", { scope: "col", className: name === "name" || name === "state" ? "" : "n",
      "aria-sort": name === order ? (rising ? "ascending" : "descending") : "none" }, button);
  })));
}

function savedHosts({ search, order, rising, page }) {
  const found = saved.hosts.filter((host) => host.name.includes(search.trim().toLowerCase()));
  const sign = rising ? 1 : -1;
  found.sort((a, b) => sign * (typeof a[order] === "string" ? a[order].localeCompare(b[order]) : a[order] - b[order]));
  const pages = Math.max(1, Math.ceil(found.length / SAVED_PAGE));
  const shown = Math.min(Math.max(page, 0), pages - 1);
  return { found: found.length, page: shown, pages, hosts: found.slice(shown * SAVED_PAGE, (shown + 1) * SAVED_PAGE) };
}

async function readHosts() {
  const { search, order, rising, page } = state.hosts;
  const query = new URLSearchParams({ search, order, rising: rising ? "1" : "0", page });
  const found = saved ? savedHosts(state.hosts) : await ask(`/hosts.json?${query}`).catch(() => null);
  if (!found || search !== state.hosts.search) return;
  Object.assign(state.hosts, { page: found.page, pages: found.pages });
  const body = document.querySelector("#host-table tbody");
  const focused = body.contains(document.activeElement) ? document.activeElement.textContent : null;
  body.replaceChildren(...found.hosts.map((host) => make("tr", {}, ...COLUMNS.map(([name, label]) => {
    if (name === "name" && saved) return make("td", { className: "long" }, host.name);
    if (name === "name") {
      const button = make("button", { type: "button", className: "plain" }, host.name);
      button.addEventListener("click", () => openHost(host.name));
      return make("td", { className: "long" }, button);
    }
    const value = host[name];
    const told = name === "state" ? value : number(name.endsWith("_bytes") ? value / 1e6 : value);
    return make("td", { className: name === "state" ? "" : "n", "data-label": label }, told);
  }))));
  if (focused !== null) [...body.querySelectorAll("button")].find((button) => button.textContent === focused)?.focus();
  byId("place").textContent = `page ${number(found.page + 1)} of ${number(found.pages)}, ${number(found.found)} hosts`;
  byId("earlier").disabled = found.page === 0;
  byId("later").disabled = found.page + 1 >= found.pages;
}

async function openHost(name) {
  state.opened = name;
  byId("host-name").textContent = name;
  byId("host-said").textContent = "";
  byId("host-lines").textContent = "...";
  for (const id of ["host-block", "host-reopen"]) byId(id).hidden = !state.known;
  if (!byId("host").open) byId("host").showModal();
  try {
    byId("host-lines").textContent = (await ask(`/host.json?${new URLSearchParams({ name })}`)).lines.join("\n");
  } catch (error) {
    byId("host-lines").textContent = error.message;
  }
}

// -- hosts as points

const FLOOR_MB = 1e-4; // where hosts that gave nothing stand: a logarithmic axis has no 0
const AT_WORK = ["resolving", "ready", "in process", "snoozed"];
const kindOf = (host) => AT_WORK.includes(host.state) ? "work" : host.state === "retired" ? "retired" : "rest";

function showScatter() {
  const hosts = (saved?.hosts ?? []).filter((host) => host.downloaded_bytes > 0);
  const figure = byId("scatter");
  figure.hidden = !hosts.length;
  if (!hosts.length) return;
  const width = Math.max(240, figure.clientWidth);
  const [height, left, bottom] = [360, 52, 34];
  const mb = hosts.map((host) => [host.downloaded_bytes / 1e6, Math.max(FLOOR_MB, host.kept_bytes / 1e6)]);
  const [low, high] = [Math.min(...mb.map(([down]) => down)) / 1.5, Math.max(...mb.map(([down]) => down)) * 1.5];
  const place = (value, from, to) => Math.log(value / from) / Math.log(to / from);
  const x = (down) => left + (width - left - 6) * place(down, low, high);
  const y = (kept) => (height - bottom) * (1 - place(kept, FLOOR_MB / 1.5, high));
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `${hosts.length} hosts by downloaded and kept MB; the table below names them` });
  for (const rate of [1, 0.1, 0.01, 0.001]) {
    const from = Math.max(low, FLOOR_MB / rate);
    if (from >= high) continue;
    svg.append(draw("line", { class: "mark", x1: x(from), y1: y(from * rate), x2: x(high), y2: y(high * rate) }));
    svg.append(draw("text", { x: width - 8, y: y(high * rate) + 14, "text-anchor": "end" }, `${100 * rate} %`));
  }
  for (let power = Math.ceil(Math.log10(FLOOR_MB)); power <= Math.log10(high); power += 1) {
    const [value, label] = [10 ** power, short(10 ** power)];
    svg.append(draw("text", { x: left - 5, y: y(value) + 4, "text-anchor": "end" }, label));
    if (value >= low) svg.append(draw("text", { x: x(value), y: height - bottom + 14, "text-anchor": "middle" }, label));
  }
  svg.append(draw("text", { x: width - 2, y: height - 4, "text-anchor": "end" }, "MB downloaded"));
  svg.append(draw("text", { x: left, y: 12 }, "MB kept"));
  hosts.forEach((host, at) => {
    const point = draw("circle", { class: `host ${kindOf(host)}`, cx: x(mb[at][0]).toFixed(1), cy: y(mb[at][1]).toFixed(1), r: 4 });
    point.append(draw("title", {}, `${host.name}: ${host.state}, ${number(mb[at][0])} MB down, ${number(host.kept_bytes / 1e6)} MB kept, ${number(host.pages)} pages`));
    svg.append(point);
  });
  figure.firstElementChild.replaceChildren(make("strong", {}, "Hosts by what they cost and gave"),
    make("span", {}, "filled: at work; hollow: retired; small: exhausted or left alone; dashed: yield rates"));
  figure.replaceChildren(figure.firstElementChild, svg);
}

// -- controls

function lock() {
  sessionStorage.removeItem("token");
  state.known = false;
  byId("unlock").hidden = false;
  byId("locked").hidden = true;
}

async function unlock(token) {
  if (token) sessionStorage.setItem("token", token);
  await ask("/status.json?large="); // a wrong token is refused
  state.known = sessionStorage.getItem("token") !== null;
  byId("unlock").hidden = state.known;
  byId("locked").hidden = !state.known;
}

function onSubmit(id, work) {
  byId(id).addEventListener("submit", (event) => { event.preventDefault(); work(); });
}

function listen() {
  onSubmit("search", () => { Object.assign(state.hosts, { search: byId("search-for").value, page: 0 }); readHosts(); });
  byId("earlier").addEventListener("click", () => { state.hosts.page -= 1; readHosts(); });
  byId("later").addEventListener("click", () => { state.hosts.page += 1; readHosts(); });
  for (const radio of document.querySelectorAll("input[name=span]")) {
    radio.addEventListener("change", () => { state.span = radio.value; showCurves(); });
  }
  let width = 0;
  new ResizeObserver(([entry]) => {
    if (Math.abs(entry.contentRect.width - width) > 1) { width = entry.contentRect.width; showCurves(); showScatter(); }
  }).observe(byId("charts"));
}

function listenToControls() {
  onSubmit("unlock", () => tell(byId("control-said"), unlock(byId("token").value.trim()).then(() => {
    byId("token").value = "";
    if (!state.watch) begin();
    return { said: "The controls are unlocked." };
  })));
  onSubmit("block", () => tell(byId("control-said"), ask("/control", { action: "block", host: byId("block-host").value.trim() })));
  onSubmit("budget", () => {
    const given = { action: "budget" };
    if (byId("max-pages").value) given.max_pages = Number(byId("max-pages").value);
    if (byId("max-mb").value) given.max_downloaded_mb = Number(byId("max-mb").value);
    tell(byId("control-said"), ask("/control", given));
  });
  byId("pause").addEventListener("click", () =>
    tell(byId("control-said"), ask("/control", { action: state.status?.phase === "paused" ? "resume" : "pause" })));
  for (const action of ["block", "reopen"]) {
    byId(`host-${action}`).addEventListener("click", () => tell(byId("host-said"), ask("/control", { action, host: state.opened })));
  }
  byId("host-close").addEventListener("click", () => byId("host").close());
  document.addEventListener("visibilitychange", () => document.hidden ? stop() : begin());
}

// -- the newest status

async function readAll() {
  const status = await ask("/status.json?large=curves,statements");
  state.curves = status.curves;
  show(status);
  showCurves();
  await readHosts();
}

function stop() {
  state.watch = null;
}

async function begin() {
  const mine = state.watch = {}; // a later call takes its place
  await look(readAll);
  follow(mine);
}

async function follow(mine) {
  for (let turn = 1; ; turn += 1) {
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    if (state.watch !== mine) return;
    await look(turn % TURNS ? async () => show(await ask("/status.json?large=")) : readAll);
  }
}

async function look(read) {
  try {
    await read();
    if (state.hasFailed) byId("said").textContent = "";
    state.hasFailed = false;
  } catch (error) {
    state.hasFailed = true;
    if (error.isLocked) stop();
    badge(error.isLocked ? "locked" : "no answer", "gone");
    byId("said").textContent = error instanceof TypeError
      ? "The crawl does not answer: it has ended, as its log says, or cannot be reached from here." : error.message;
  }
}

async function main() {
  listen();
  showHostHead();
  if (saved) {
    Object.assign(state, { curves: saved.status.curves, span: "whole" });
    document.querySelector("input[value=whole]").checked = true;
    show(saved.status);
    showCurves();
    showScatter();
    await readHosts();
    document.body.dataset.drawn = "yes";
    return;
  }
  listenToControls();
  const token = location.hash.match(/^#token=(.+)$/);
  if (token) history.replaceState(null, "", location.pathname);
  await tell(byId("said"), unlock(token ? decodeURIComponent(token[1].trim()) : "").then(() => ({})));
  await begin();
  document.body.dataset.drawn = "yes";
}

main();

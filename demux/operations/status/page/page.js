
"use strict";
// what comes from outside is only ever set as text (textContent, setAttribute): no markup is made from it
const ROWS = 100;
const URGENCY = { failed: 0, waiting: 1, behind: 2, current: 3 };
const STATES = { failed: "failed", waiting: "waiting", behind: "behind", current: "up to date" };
const refresh = Number(document.body.dataset.refresh) * 1000;
const $ = (id) => document.getElementById(id);
let data, games, skew = 0, live = refresh > 0, failedSince = null, timer = null;
const view = { filter: "", state: "", sort: "state", down: false, page: 0, open: new Set() };

// text of values; `null` is unknown
const whole = new Intl.NumberFormat("en");
const few = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const number = (value) => value === null ? "–" : whole.format(value);
const short = (value) => value !== null && value >= 100000 ? compact.format(value) : number(value);
const rate = (value) => value === null ? "–" : value >= 1000 ? whole.format(Math.round(value)) : few.format(value);
const percent = (value) => value === null ? "–" : value > 0 && value < 0.001 ? "<0.1 %" : `${(value * 100).toFixed(1)} %`;
const seconds = (value) => value === null ? "–" : value < 0.9995 ? `${Math.round(value * 1000)} ms` : value < 120 ? `${few.format(value)} s` : span(value * 1000);
function bytes(value) {
  if (value === null) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let at = 0;
  while (value >= 1024 && at < units.length - 1) { value /= 1024; at += 1; }
  return `${few.format(value)} ${units[at]}`;
}
function span(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 120) return `${s} s`;
  if (s < 7200) return `${Math.floor(s / 60)} min`;
  if (s < 172800) return `${(s / 3600).toFixed(1)} h`;
  return `${Math.floor(s / 86400)} d`;
}
// a page in a file shows ages as they were when it was made
const now = () => refresh ? Date.now() + skew : data.at;
const clock = (ms) => new Date(ms).toISOString().replace("T", " ").replace(/\.\d+Z$/, " UTC");
const ago = (ms) => ms === null ? "never" : `${span(now() - ms)} ago`;
const counted = (count, word) => `${number(count)} ${word}${count === 1 ? "" : "s"}`;
const lagTime = (game) => game.lag_rows === null ? "–" : game.waiting_since === null ? "–" : span(now() - game.waiting_since);

function make(tag, properties, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (name === "text") made.textContent = value;
    else if (name === "onclick") made.addEventListener("click", value);
    else if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}
function time(ms) {
  return ms === null ? document.createTextNode("never")
    : make("time", { datetime: new Date(ms).toISOString(), title: clock(ms), text: ago(ms) });
}

// a sentence whose commands stand between backticks
function sentence(text) {
  const parts = text.split("`");
  if (parts.length % 2 === 0) return [text];
  return parts.map((part, at) => at % 2 ? make("code", { text: part }) : part);
}

// columns of the table: key, head, value to sort by, cell; `wide` and then `middle` ones are left out where there is no room
const COLUMNS = [
  { key: "name", head: "Game", value: (g) => g.name, text: true },
  { key: "state", head: "State", value: (g) => URGENCY[g.state], cell: (g) => make("span", { class: `state ${g.state}`, text: STATES[g.state] }) },
  { key: "lag_rows", head: "Rows waiting", value: (g) => g.lag_rows, cell: (g) => number(g.lag_rows), number: true },
  { key: "lag_s", head: "Waiting for", value: (g) => g.waiting_since === null ? null : -g.waiting_since, cell: lagTime, number: true },
  { key: "fresh_p95", head: "Fresh, p95", value: (g) => g.fresh_p95, cell: (g) => seconds(g.fresh_p95), number: true },
  { key: "rate", head: "Rows/s", value: (g) => g.rate, cell: (g) => rate(g.rate), number: true },
  { key: "last_success", head: "Last success", value: (g) => g.last_success, cell: (g) => time(g.last_success), number: true },
  { key: "quarantined", head: "Quarantine", value: (g) => g.quarantined, cell: (g) => number(g.quarantined), number: true },
  { key: "versions", middle: true, head: "Versions", value: (g) => g.versions, cell: (g) => g.versions.length > 16 ? `${g.versions.slice(0, 5)} … ${g.versions.slice(-5)}` : g.versions || "–", text: true },
  { key: "seconds", middle: true, head: "Work", value: (g) => g.seconds, cell: (g) => seconds(g.seconds), number: true },
  { key: "share", middle: true, head: "Share of cost", value: (g) => g.share, cell: (g) => percent(g.share), number: true },
  { key: "files", head: "Files", value: (g) => g.files, cell: (g) => number(g.files), number: true, wide: true },
  { key: "bytes", head: "Size", value: (g) => g.bytes, cell: (g) => bytes(g.bytes), number: true, wide: true },
  { key: "cluster", head: "Cluster", value: (g) => g.cluster, cell: (g) => g.cluster || "–", text: true, wide: true },
];

function take(content) {
  data = content;
  games = content.games.map((row) => Object.fromEntries(content.columns.map((name, at) => [name, row[at]])));
  for (const game of games) {
    const failure = game.failure === null ? "" : content.failures[game.failure].join(" ");
    game.search = `${game.name}\n${game.key}\n${game.cluster || ""}\n${failure}`.toLowerCase();
  }
}

function chosen() {
  const words = view.filter.toLowerCase().trim();
  const found = games.filter((g) => (!view.state || g.state === view.state) && (!words || g.search.includes(words)));
  const column = COLUMNS.find((one) => one.key === view.sort);
  const turn = view.down ? -1 : 1;
  const compare = (a, b) => {
    const [x, y] = [column.value(a), column.value(b)];
    if (x === y) return 0;
    // unknown values come last, whatever the order
    if (x === null) return 1;
    if (y === null) return -1;
    return turn * (column.text ? String(x).localeCompare(String(y), "en", { numeric: true }) : x - y);
  };
  const second = (a, b) => (b.lag_rows || 0) - (a.lag_rows || 0) || (a.key < b.key ? -1 : 1);
  return found.sort((a, b) => compare(a, b) || second(a, b));
}

function drawTable() {
  const found = chosen();
  const pages = Math.max(1, Math.ceil(found.length / ROWS));
  view.page = Math.min(view.page, pages - 1);
  const shown = found.slice(view.page * ROWS, (view.page + 1) * ROWS);
  const focused = document.activeElement && document.activeElement.dataset.key;
  const rows = [];
  for (const game of shown) {
    rows.push(rowOf(game));
    if (view.open.has(game.key)) rows.push(detailOf(game));
  }
  $("body").replaceChildren(...rows);
  if (focused) {
    const again = $("body").querySelector(`button[data-key="${focused}"]`);
    if (again) again.focus({ preventScroll: true });
  }
  for (const head of $("head").children) {
    const sorted = head.dataset.column === view.sort;
    if (sorted) head.setAttribute("aria-sort", view.down ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  }
  $("sort").value = `${view.sort} ${view.down ? "down" : "up"}`;
  setText($("count"), found.length === games.length ? counted(games.length, "game") : `${number(found.length)} of ${counted(games.length, "game")}`);
  setText($("page"), `Page ${view.page + 1} of ${number(pages)}`);
  $("previous").disabled = view.page === 0;
  $("next").disabled = view.page >= pages - 1;
}
function setText(element, text) {
  // a screen reader announces changes alone
  if (element.textContent !== text) element.textContent = text;
}

function rowOf(game) {
  const open = view.open.has(game.key);
  const row = make("tr", { class: "game", role: "row" });
  for (const column of COLUMNS) {
    const classes = [column.key === "name" ? "name" : "", column.number ? "number" : "", column.wide ? "wide" : "", column.middle ? "middle" : ""];
    const cell = make("td", { role: "cell", class: classes.join(" ").trim() || null, "data-label": column.head });
    cell.append(column.key === "name" ? make("button", {
      type: "button", "data-key": game.key, "aria-expanded": String(open), text: game.name, onclick: () => toggle(game.key),
    }) : column.cell(game));
    row.append(cell);
  }
  return row;
}
function toggle(key) {
  if (!view.open.delete(key)) view.open.add(key);
  drawTable();
}

function detailOf(game) {
  const facts = make("dl");
  const add = (name, ...values) => facts.append(make("dt", { text: name }), make("dd", {}, ...values));
  if (game.failure !== null) {
    const [condition, why] = data.failures[game.failure];
    add("Failed", make("span", { class: "state failed", text: condition }), " ", ...sentence(why));
  } else if (game.last_failure !== null) {
    const [condition, why] = data.failures[game.last_failure];
    add("Last error", `${condition} `, ...sentence(why), " (", time(game.last_failure_at), ")");
  }
  if (game.reason) add("Waits", game.reason);
  add("Table", `silver/${game.key}: ${number(game.silver)} rows, ${number(game.files)} files, ${bytes(game.bytes)}`);
  add("Bronze", `${number(game.bronze)} rows, ${number(game.lag_rows)} of them wait${game.retired ? `; ${number(game.retired)} were retired` : ""}`);
  const limit = game.fresh_within === null ? "" : `; games.fresh_within is ${seconds(game.fresh_within)}`;
  add("Freshness", `p50 ${seconds(game.fresh_p50)}, p95 ${seconds(game.fresh_p95)} in the last hour${limit}`);
  add("Cluster", game.cluster || "none yet");
  add("Cost", `${seconds(game.seconds)} in its last round, ${percent(game.share)} of all work on record`);
  add("Schema versions", game.versions || "none on record");
  const causes = Object.entries(game.causes).map(([cause, count]) => `${cause} ${number(count)}`);
  if (game.dropped) causes.push(`dropped ${number(game.dropped)}`);
  add("Quarantine", causes.join(", ") || "nothing");
  const plots = make("div", { class: "plots" });
  const at = ([round]) => data.rounds[round][0];
  if (game.recent.length) {
    plots.append(
      plot("Rows per round", game.recent.map((p) => [at(p), p[1]]), short),
      plot("Work per round", game.recent.map((p) => [at(p), p[2]]), seconds),
    );
  }
  return make("tr", { class: "detail", role: "row" }, make("td", { role: "cell", colspan: COLUMNS.length }, facts, plots));
}

// a figure of points [time, value], oldest first; the sentence in `aria-label` is the same for who does not see it
function plot(title, points, text, nothing = "Not known.") {
  const known = points.filter(([, value]) => value !== null);
  if (!known.length) return make("figure", {}, make("figcaption", {}, make("span", { text: title }), make("b", { text: "–" })), make("p", { class: "few", text: nothing }));
  const values = known.map(([, value]) => value), last = values[values.length - 1];
  const most = values.reduce((a, b) => Math.max(a, b), 0), first = known[0][0], end = known[known.length - 1][0];
  const x = (at) => end > first ? (at - first) / (end - first) * 300 : 300, y = (value) => 70 - (most ? value / most * 66 : 0);
  const line = known.length > 1 ? known.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`) : [`0,${y(last).toFixed(1)}`, `300,${y(last).toFixed(1)}`];
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const draw = (tag, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    svg.append(made);
  };
  svg.setAttribute("viewBox", "0 0 300 72");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `${title}: ${known.length} points, last ${text(last)}, at most ${text(most)}`);
  draw("line", { x1: 0, x2: 300, y1: 70.5, y2: 70.5, class: "base" });
  draw("polygon", { points: `0,70 ${line.join(" ")} 300,70`, class: "area" });
  draw("polyline", { points: line.join(" "), class: "line" });
  return make("figure", {},
    make("figcaption", {}, make("span", { text: title }), make("b", { text: text(last) })), svg,
    make("div", { class: "axis" }, make("span", { text: ago(first) }), make("span", { text: `most ${text(most)}` }), make("span", { text: end > first ? ago(end) : "" })));
}

function drawTiles() {
  const states = data.states, last = data.rounds[data.rounds.length - 1];
  const oldest = games.reduce((least, g) => g.waiting_since !== null && g.waiting_since < least ? g.waiting_since : least, Infinity);
  const set = data.causes.reduce((sum, cause) => sum + cause[2], 0);
  const tiles = [
    ["Games", number(games.length), [states.failed && `${states.failed} failed`, states.waiting && `${states.waiting} wait`, states.behind && `${states.behind} behind`].filter(Boolean).join(", ") || "all up to date"],
    ["Rows waiting", number(data.lag_rows), Number.isFinite(oldest) ? `the oldest for ${span(now() - oldest)}` : "none is late"],
    ["Rows decoded", `${rate(data.rate)}/s`, "over 15 minutes"],
    ["In quarantine", number(set), counted(data.causes.length, "cause")],
    ["Last round", last ? ago(last[0]) : "never", last ? `${number(last[3])} rows of ${counted(last[1], "game")}, ${seconds(last[4])} of work` : "`demux run` makes one"],
  ];
  if (data.lag_rows === null) tiles[1][2] = "not known";
  $("tiles").replaceChildren(...tiles.map(([name, value, more]) => make("div", {}, make("dt", { text: name }), make("dd", { text: value }), make("dd", { class: "more", text: more }))));
}

function drawProblems() {
  $("problems").hidden = !data.problems.length;
  $("problem-list").replaceChildren(...data.problems.map((one) => {
    const more = one.count - one.games.length;
    // a name from right to left must not turn its neighbours round
    const names = one.games.flatMap((name, at) => [at ? ", " : "", make("bdi", { text: name })]);
    const kind = ["waiting", "late"].includes(one.condition) ? "waiting" : "failed";
    return make("li", { class: kind }, make("span", { class: "what", text: one.condition }), " ", ...sentence(one.sentence), make("p", { class: "muted" }, `${counted(one.count, "game")}: `, ...names, more > 0 ? ` and ${number(more)} more` : ""));
  }));
  if (data.more_problems) $("problem-list").append(make("li", { text: `and ${number(data.more_problems)} more: see the games below` }));
  $("notes").hidden = !data.notes.length;
  $("notes").replaceChildren(...data.notes.map((note) => make("p", { text: note })));
}

// those with most trouble where not all have room
function drawClusters() {
  const most = (a, b) => b[2] - a[2] || b[3] - a[3] || b[4] - a[4];
  const shown = data.clusters.length > ROWS ? [...data.clusters].sort(most).slice(0, ROWS) : data.clusters;
  const more = data.clusters.length - shown.length;
  $("clusters").replaceChildren(listing(["Cluster", ">Games", ">Failed", ">Behind", ">Waiting", ">Work"],
    shown.map((c) => [...c.slice(0, 5), seconds(c[5])]), "No game has a cluster yet: `demux run` or `demux apply` makes a plan."));
  if (more) $("clusters").append(make("p", { class: "muted", text: `and ${number(more)} more with less to see to: filter the games by their names` }));
}

// heads of columns of numbers begin with `>`
function listing(heads, rows, empty) {
  if (!rows.length) return make("p", { class: "empty", text: empty });
  const shown = (value) => typeof value === "number" ? number(value) : value === null ? "" : value;
  const cells = (row, tag) => row.map((value, at) => make(tag, { class: heads[at][0] === ">" ? "number" : null, text: tag === "th" ? value.replace(">", "") : shown(value) }));
  return make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ...cells(heads, "th"))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...cells(row, "td"))))));
}

function draw() {
  $("root").textContent = data.root;
  $("read-at").textContent = `read ${clock(data.at)}`;
  drawTiles();
  drawProblems();
  $("plots").replaceChildren(
    plot("Rows read", data.rounds.map((r) => [r[0], r[6]]), (value) => `${value >= 100000 ? short(value) : rate(value)}/s`, "A rate needs two rounds."),
    plot("Rows waiting after", data.rounds.map((r) => [r[0], r[5]]), short, data.rounds.length ? "Not known." : "No round yet."),
    plot("Work per round", data.rounds.map((r) => [r[0], r[4]]), seconds, "No round yet."),
  );
  drawTable();
  drawClusters();
  $("causes").replaceChildren(listing(["Cause", "Stage", ">Rows", ">Games"], data.causes, "Nothing is in quarantine."));
}

async function again() {
  try {
    const answer = await fetch("status.json", { cache: "no-store", signal: AbortSignal.timeout(30000) });
    if (!answer.ok) throw new Error((await answer.text()).slice(0, 300) || `HTTP ${answer.status}`);
    const content = await answer.json();
    // another version of the program makes another page
    if (content.format !== data.format) { location.reload(); return; }
    take(content);
    failedSince = null;
    draw();
  } catch (error) {
    failedSince = failedSince || Date.now();
    connection(error.message);
    return;
  } finally {
    plan();
  }
  connection();
}
function plan() {
  clearTimeout(timer);
  if (live && !document.hidden) timer = setTimeout(again, refresh);
}
function connection(message) {
  $("connection").className = failedSince ? "lost" : "muted";
  setText($("connection"), !refresh ? "a page in a file: as it was then" : failedSince ? `not read since ${clock(failedSince)}: ${message}` : live ? "live" : "paused");
  setText($("pause"), live ? "Pause" : "Go on");
}

function sortBy(key) {
  const column = COLUMNS.find((one) => one.key === key);
  // numbers are looked at from the greatest, words and urgency from the first
  view.down = view.sort === key ? !view.down : Boolean(column.number);
  view.sort = key;
  view.page = 0;
  drawTable();
}

function wayOf(column, way) {
  if (column.key === "state") return way === "up" ? "urgent first" : "urgent last";
  if (column.text) return way === "up" ? "A to Z" : "Z to A";
  return way === "up" ? "least first" : "most first";
}

function begin() {
  take(JSON.parse($("data").textContent));
  skew = data.at - Date.now();
  for (const column of COLUMNS) {
    const button = make("button", { type: "button", text: column.head, onclick: () => sortBy(column.key) });
    const classes = [column.number ? "number" : "", column.wide ? "wide" : "", column.middle ? "middle" : ""].join(" ").trim();
    $("head").append(make("th", { role: "columnheader", scope: "col", "data-column": column.key, class: classes || null }, button));
    for (const way of column.number ? ["down", "up"] : ["up", "down"]) {
      $("sort").append(make("option", { value: `${column.key} ${way}`, text: `${column.head}, ${wayOf(column, way)}` }));
    }
  }
  $("filter").addEventListener("input", () => { view.filter = $("filter").value; view.page = 0; drawTable(); });
  $("state").addEventListener("change", () => { view.state = $("state").value; view.page = 0; drawTable(); });
  $("sort").addEventListener("change", () => {
    const [key, way] = $("sort").value.split(" ");
    Object.assign(view, { sort: key, down: way === "down", page: 0 });
    drawTable();
  });
  $("previous").addEventListener("click", () => { view.page -= 1; drawTable(); });
  $("next").addEventListener("click", () => { view.page += 1; drawTable(); });
  $("pause").hidden = !refresh;
  $("pause").addEventListener("click", () => { live = !live; connection(); plan(); });
  document.addEventListener("visibilitychange", plan);
  window.addEventListener("hashchange", goTo);
  draw();
  goTo();
  connection();
  plan();
}

// #game=<key> opens a game
function goTo() {
  const key = /^#game=([a-z][a-z0-9_]*)$/.exec(location.hash);
  const game = key && games.find((one) => one.key === key[1]);
  if (!game) return;
  view.open.add(game.key);
  view.page = Math.max(0, Math.floor(chosen().indexOf(game) / ROWS));
  drawTable();
  const button = $("body").querySelector(`button[data-key="${game.key}"]`);
  if (button) { button.focus({ preventScroll: true }); button.scrollIntoView({ block: "center" }); }
}
begin();

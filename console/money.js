// Money: what was staked, won and moved in a window of days, by day, customer, provider and game; and the entries that
// each figure is the sum of. Sums are the ledger's own, as `croupier wallet report` has them.
import { get } from "./api.js";
import { amount, badge, copyable, fill, h, number, signed } from "./dom.js";
import { choice, counted, empty, later, list, scroller, section } from "./parts.js";
import { graph } from "./graph.js";
import { customerLink, customerName } from "./names.js";

const DAY_MS = 86400000;
const dayOf = (ms) => new Date(ms).toISOString().slice(0, 10);
const today = () => dayOf(Date.now());
const ago = (days) => dayOf(Date.now() - days * DAY_MS);
const monthOf = (back) => {
    const now = new Date();
    const at = (months, day) => dayOf(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back + months, day));
    return [at(0, 1), back === 0 ? today() : at(1, 0)];
};

const WINDOWS = { today: ["today", () => [today(), today()]], yesterday: ["yesterday", () => [ago(1), ago(1)]], week: ["last 7 days", () => [ago(6), today()]],
    month: ["last 30 days", () => [ago(29), today()]], this: ["this month", () => monthOf(0)], before: ["last month", () => monthOf(1)] };

/* An amount that a number of this language does not hold, or that the ledger could not add up, is null. */
const exact = (minor) => (Number.isSafeInteger(minor) ? minor : null);
const add = (one, other) => (exact(one) === null || exact(other) === null ? null : exact(one + other));
const subtract = (one, other) => (exact(one) === null || exact(other) === null ? null : one - other);

/* The columns of `wallet report`: of stakes and wins, what was rolled back stands in a column for both; other figures are less
 * what was rolled back. `figure`: what the API calls the entries of a column. */
const less = (row, name) => subtract(row[`${name}_minor`], row[`rolled_back_${name}_minor`]);
const FIGURES = [
    { label: "Staked", of: (row) => row.stakes_minor, figure: "stake" },
    { label: "Won", of: (row) => row.wins_minor, figure: "win" },
    { label: "Rolled back", of: (row) => subtract(row.rolled_back_stakes_minor, row.rolled_back_wins_minor) },
    { label: "Promos", of: (row) => less(row, "promos"), figure: "promo" },
    { label: "Jackpots", of: (row) => less(row, "jackpots"), figure: "jackpot" },
    { label: "Adjusted", of: (row) => less(row, "adjustments"), figure: "adjustment" },
    { label: "Paid in", of: (row) => less(row, "transfers_in"), figure: "paid_in" },
    { label: "Paid out", of: (row) => less(row, "transfers_out"), figure: "paid_out" },
    { label: "Result", of: (row) => row.result_minor },
];
const RESULT = FIGURES.length - 1;

/** Sums of rows with the same key and currency, in the order of the first of each. */
function group(rows, keyOf) {
    const groups = new Map();
    for (const row of rows) {
        const key = JSON.stringify([keyOf(row), row.currency]);
        const sums = groups.get(key) ?? { row, currency: row.currency, exponent: row.currency_exponent, entries: 0, figures: FIGURES.map(() => 0) };
        sums.entries += row.entries;
        sums.figures = sums.figures.map((sum, at) => add(sum, FIGURES[at].of(row)));
        groups.set(key, sums);
    }
    return [...groups.values()];
}

/* The newest day first; else by currency, and what was staked most first. */
const sorted = (groups, days) => groups.sort((a, b) => (days ? b.row.day.localeCompare(a.row.day) : 0) || a.currency.localeCompare(b.currency) || b.figures[0] - a.figures[0]);

const query = (asked) => new URLSearchParams(Object.entries(asked).filter(([, value]) => value)).toString();
const moneyHash = (asked) => `#/money?${query(asked)}`;

/* The columns of all tables: what is nothing everywhere is left out. */
function columnsOf(items) {
    return FIGURES.map((_, at) => at).filter((at) => at < 2 || at === RESULT || items.some((row) => FIGURES[at].of(row) !== 0));
}

/* Where the entries of a row are; `narrowed`: what tells the row from others. */
const entriesHash = (asked, narrowed, figure) => `#/money/entries?${query({ ...asked, ...narrowed, figure })}`;
const written = (minor, exponent) => (minor === null ? "not known" : amount(minor, exponent));

/** A table of sums: `label` and `name` of the first column, `narrowed` of a row: what is asked for its entries. */
function sumTable(asked, shown, { label, name, narrowed, caption }, groups) {
    const head = (text, right) => h("th", { scope: "col", class: right ? "number" : null }, text);
    const cell = (one, at) => {
        const { label: what, figure } = FIGURES[at];
        const text = written(one.figures[at], one.exponent);
        return h("td", { class: "number" }, one.figures[at] === 0 ? text
            : h("a", { class: at === RESULT ? "figure result" : "figure", href: entriesHash(asked, narrowed(one.row), figure), title: `${what}: its entries` }, text));
    };
    return scroller(caption, h("table", null, h("caption", { class: "unseen" }, caption),
        h("thead", null, h("tr", null, head(label), head("Currency"), shown.map((at) => head(FIGURES[at].label, true)), head("Entries", true))),
        h("tbody", null, groups.map((one) => h("tr", null, h("td", null, name(one.row)), h("td", null, one.currency), shown.map((at) => cell(one, at)),
            h("td", { class: "number" }, h("a", { class: "figure", href: entriesHash(asked, narrowed(one.row)), title: "The entries" }, number(one.entries))))))));
}

const ROWS = 100; // are shown at first: there may be thousands of games

function sumSection(asked, shown, of, groups) {
    const place = h("div", null, sumTable(asked, shown, of, groups.slice(0, ROWS)));
    if (groups.length > ROWS) {
        place.append(h("div", { class: "below" }, counted(ROWS, groups.length),
            h("button", { type: "button", onclick: () => fill(place, sumTable(asked, shown, of, groups)) }, "Show all")));
    }
    return section(of.caption, place);
}

const withoutOf = (row) => (row.provider === null ? (row.game_id === null ? "both" : "provider") : row.game_id === null ? "game" : null);

/* The tables, each of the sums that are by day or not. */
const tablesOf = (asked) => [
    { caption: "By day", days: true, key: (row) => row.day, label: "Day (UTC)", narrowed: (row) => ({ from: row.day, to: row.day }),
        name: (row) => h("a", { class: "whole", href: moneyHash({ ...asked, from: row.day, to: row.day }) }, row.day) },
    { caption: "By customer", key: (row) => row.customer, label: "Customer", narrowed: (row) => ({ customer: row.customer }),
        name: (row) => customerLink(row.customer, moneyHash({ ...asked, customer: row.customer })) },
    { caption: "By provider", key: (row) => row.provider, label: "Provider", narrowed: (row) => (row.provider ? { provider: row.provider } : { without: "provider" }),
        name: (row) => (row.provider ? h("a", { href: moneyHash({ ...asked, provider: row.provider }) }, row.provider) : "none") },
    { caption: "By game", key: (row) => [row.provider, row.game_id], label: "Game", narrowed: (row) => ({ provider: row.provider, game: row.game_id, without: withoutOf(row) }),
        name: (row) => (row.game_id ? h("a", { href: `#/casino/games/${encodeURIComponent(row.game_id)}` }, row.game_id) : row.provider ? `none, of ${row.provider}` : "none") },
];

// ---- export ----

/* A spreadsheet takes what begins with one of these for a formula, unless it is a number. Some begin a cell after a semicolon or a tab,
 * and pass over spaces and what is not seen. */
const FORMULA = /(^|[;\t\r\n])(?=[\s\p{Cf}]*[=+\-@＝＋－＠\t\r])/gu;
const guarded = (value) => (/^-?[\d.]+$/.test(value) ? value : value.replace(FORMULA, "$1'"));
const quoted = (value) => (guarded(value) !== value || /[",;\t\r\n]/.test(value) ? `"${guarded(value).replaceAll("\"", "\"\"")}"` : value);
const plain = (minor, exponent) => (minor === null ? "" : amount(minor, exponent).replaceAll(",", "").replace("−", "-"));

/** All sums as lines of text with commas, for a spreadsheet: by day first, then by customer, provider and game. */
async function csvOf(items) {
    const head = ["day", "customer", "customer_name", "provider", "game", "currency", "entries", ...FIGURES.map(({ label }) => label.toLowerCase().replaceAll(" ", "_"))];
    const names = new Map(await Promise.all([...new Set(items.map((row) => row.customer))].map(async (id) => [id, await customerName(id)])));
    const lines = items.map((row) => [row.day ?? "", row.customer, names.get(row.customer), row.provider ?? "", row.game_id ?? "", row.currency, String(row.entries),
        ...group([row], () => "")[0].figures.map((minor) => plain(minor, row.currency_exponent))]);
    return [head, ...lines].map((line) => `${line.map(quoted).join(",")}\r\n`).join("");
}

async function download(name, items) {
    const url = URL.createObjectURL(new Blob([await csvOf(items)], { type: "text/csv" }));
    h("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60000);
}

// ---- the page ----

function draw(drawn, asked, days, currency) {
    const of = new Map(group(days.filter((row) => row.currency === currency), (row) => row.day).map((one) => [one.row.day, one]));
    const at = [];
    for (let ms = Date.parse(asked.from); ms <= Date.parse(asked.to); ms += DAY_MS) {
        at.push(ms / 1000);
    }
    const exponent = days.find((row) => row.currency === currency).currency_exponent;
    const values = (which) => at.map((second) => {
        const minor = of.has(dayOf(second * 1000)) ? of.get(dayOf(second * 1000)).figures[which] : 0;
        return minor === null ? null : minor / 10 ** exponent;
    });
    drawn.show(at, [{ label: "result", colour: 1, values: values(RESULT) }, { label: "staked", colour: 4, values: values(0) }, { label: "won", colour: 3, values: values(1) }]);
}

/* The curve is of one currency at a time: at first of that with the most entries. */
function curve(page, asked, days) {
    const currencies = group(days, () => "").sort((a, b) => b.entries - a.entries);
    const place = h("div", { class: "curve" });
    const show = (currency) => {
        const { exponent } = currencies.find((one) => one.currency === currency);
        const drawn = graph(page, { title: "Result by day", unit: currency, daily: true, write: (value) => (value === null ? "–" : amount(Math.round(value * 10 ** exponent), exponent)) });
        fill(place, currencies.length > 1 && h("p", { class: "controls" }, choice("Curve in", Object.fromEntries(currencies.map((one) => [one.currency, one.currency])), currency, show)),
            drawn.element);
        draw(drawn, asked, days, currency);
    };
    show(currencies[0].currency);
    return place;
}

const narrowings = (asked) => (asked.customer || asked.provider) && h("span", { class: "inline" }, "of ", asked.customer && customerLink(asked.customer), asked.customer && asked.provider && ", ",
    asked.provider && h("a", { href: `#/casino/providers/${encodeURIComponent(asked.provider)}` }, asked.provider), " · ", h("a", { href: moneyHash({ from: asked.from, to: asked.to }) }, "of all"));

/* The first and the last day, and what is often asked for. */
function windowControls(page, asked) {
    const day = (label, name) => h("label", { class: "inline" }, `${label} `, h("input", { type: "date", required: true, value: asked[name], max: today(),
        onchange: (event) => event.target.value && page.go(moneyHash({ ...asked, [name]: event.target.value }).slice(1)) }));
    const named = Object.keys(WINDOWS).find((name) => WINDOWS[name][1]().join() === `${asked.from},${asked.to}`) ?? "";
    return h("div", { class: "controls" }, choice("Days", { ...(named ? {} : { "": "as given" }), ...Object.fromEntries(Object.entries(WINDOWS).map(([name, [text]]) => [name, text])) }, named, (name) => {
        const [from, to] = WINDOWS[name][1]();
        page.go(moneyHash({ ...asked, from, to }).slice(1));
    }), day("from", "from"), day("to", "to"), narrowings(asked));
}

const askedOf = ({ from, to = today(), customer, provider }) => ({ from: from ?? (to < ago(6) ? to : ago(6)), to, customer, provider });

export async function moneyPage(page) {
    const asked = askedOf(page.query);
    const button = h("button", { type: "button", disabled: true }, "Download as CSV");
    const place = later(page, async () => {
        const { items: all } = await get("report", asked, page.signal);
        const items = all.filter((row) => asked.customer || !row.sandbox);
        const apart = [...new Set(all.filter((row) => !items.includes(row)).map((row) => row.customer))];
        const sandbox = apart.length > 0 && h("p", { class: "quiet" }, "Not counted, because they are sandbox customers: ",
            apart.map((id, at) => [at > 0 && ", ", customerLink(id, moneyHash({ ...asked, customer: id }))]));
        const [days, lines] = [items.filter((row) => row.day), items.filter((row) => !row.day)];
        if (items.length === 0) {
            return [empty("No money was moved in these days."), sandbox];
        }
        button.disabled = false;
        button.addEventListener("click", () => download(`money-${asked.from}-${asked.to}.csv`, items));
        const totals = { label: "Days (UTC)", name: () => h("span", { class: "whole" }, asked.from === asked.to ? asked.to : `${asked.from} to ${asked.to}`), narrowed: () => ({}), caption: "All by currency" };
        const shown = columnsOf(items);
        return [sumTable(asked, shown, totals, group(days, () => "")), sandbox, curve(page, asked, days),
            tablesOf(asked).map((one) => sumSection(asked, shown, one, sorted(group(one.days ? days : lines, one.key), one.days))),
            h("p", { class: "quiet" }, "The same of a day from the command line: ", h("code", null, "croupier wallet report --day DATE"), "; its entries as lines of JSON: ",
                h("code", null, `croupier wallet export --day DATE${asked.customer ? ` --customer ${asked.customer}` : ""}`))];
    });
    return { title: "Money", actions: button, content: [windowControls(page, asked), place] };
}

// ---- the entries of a figure ----

const FIGURE_NAMES = { "": "all entries", stake: "stakes", win: "wins", promo: "promos", jackpot: "jackpots", adjustment: "adjustments", paid_in: "money paid in", paid_out: "money paid out" };
const WITHOUT = { provider: "of no provider", game: "of no game", both: "of no provider and no game" };

const ENTRY_COLUMNS = [
    { label: "When", when: (entry) => entry.created_at },
    { label: "Operation", value: (entry) => [entry.operation, " ", entry.kind && entry.kind !== "win" && badge("idle", entry.kind), entry.sandbox && badge("warn", "sandbox")] },
    { label: "Amount", number: true, value: (entry) => h("b", { class: entry.movement_minor > 0 ? "in" : null }, signed(entry.movement_minor, entry.currency_exponent), " ", entry.currency) },
    { label: "Player", value: (entry) => h("a", { class: "whole", href: `#/players/${entry.player_id}` }, entry.player_id) },
    { label: "Customer", value: (entry) => customerLink(entry.customer) },
    { label: "Game", value: (entry) => (entry.game_id ? h("a", { class: entry.game_id.length <= 20 && "whole", href: `#/casino/games/${encodeURIComponent(entry.game_id)}` }, entry.game_id) : "") },
    { label: "Round", value: (entry) => (entry.round_id ? copyable(entry.round_id) : "") },
    { label: "Transaction", value: (entry) => copyable(entry.transaction_id) },
    { label: "Refers to", value: (entry) => (entry.reference_transaction_id ? copyable(entry.reference_transaction_id) : "") },
];

export async function entriesPage(page) {
    const { game, without, figure } = page.query;
    const asked = askedOf(page.query);
    const shown = list(page, { path: "entries", query: { ...asked, game, without, figure }, caption: "Entries, as they were made", columns: ENTRY_COLUMNS,
        extra: [choice("Show", FIGURE_NAMES, figure, (chosen) => shown.reload({ figure: chosen })), h("span", { class: "inline" }, `${asked.from} to ${asked.to}`),
            asked.customer && h("span", { class: "inline" }, "of ", customerLink(asked.customer)), asked.provider && h("span", { class: "inline" }, `of ${asked.provider}`),
            game && h("span", { class: "inline" }, `in ${game}`), WITHOUT[without]],
        nothing: empty("No entry of these days is like that.") });
    return { title: "Entries", up: [moneyHash(asked).slice(1), "Money"], content: shown };
}

// The house at a glance: what is wrong stands first, then figures, then curves.
import { get, metrics, silence } from "./api.js";
import { badge, duration, fill, h, number, sentence, sportName } from "./dom.js";
import { choice, empty, follow, problem, refusals, section, table } from "./parts.js";
import { graph } from "./graph.js";
import { concerns } from "./house.js";

const HOUSE_SECONDS = 10; // between two looks at health and the ledger

/* Charts of figures of the server's by name; `figure` is the one that is read off in large,
   and one of colour 0 is read off alone. `now`: a value is of a moment, not of the time before. */
const CHARTS = [
    { title: "Requests", unit: "a second", figure: 4, series: [["requests_2xx_per_second", "answered", 1], ["requests_3xx_per_second", "not modified", 4],
        ["requests_4xx_per_second", "refused", 3], ["requests_5xx_per_second", "failed", 2], ["requests_per_second", "all", 0]] },
    { title: "99 % answered within", unit: "ms", figure: 1, series: [["p50_ms", "half within", 1], ["p99_ms", "99 % within", 3]] },
    { title: "Denials", unit: "a second", series: [["denials_per_second", "denied", 3]] },
    { title: "Open connections", now: true, series: [["connections", "open", 1]] },
    { title: "Ledger operations", unit: "a second", series: [["ledger_operations_per_second", "operations", 1]] },
    { title: "99 % committed within", unit: "ms", series: [["ledger_commit_ms", "99 % within", 3]] },
];
const SPANS = { minutes: "last 6 minutes", hours: "last 12 hours" };

/** What is wrong now, worst first. Each leads to the page that says more. */
function wrongs(overview, { health, ledger, figures }) {
    if (silence() > 0) {
        return [["idle", "The server does not answer. What stands here is its last answer.", "#/health"]];
    }
    const found = [];
    for (const one of ledger ? [ledger.verified.whole, ledger.verified.recent] : []) {
        if (one !== null && !one.sound) {
            found.push(["bad", sentence(one.reason), "#/ledger"]);
        }
    }
    for (const [name, title] of [["odds_store", "The odds store"], ["platform_store", "The platform store"]]) {
        if (health && health[name].status !== "ok") {
            found.push(["bad", `${title} ${health[name].status === "read_only" ? "takes no changes" : "does not answer"}${health[name].message ? `: ${health[name].message}` : ""}`, "#/health"]);
        }
    }
    if (overview.live.requests_5xx_per_second > 0) {
        found.push(["bad", "Requests fail (5xx). The log says which and why.", "#/health"]);
    }
    if (health === null || ledger === null || figures === null) {
        found.push(["warn", "Whether the stores and the ledger are well is not known: no answer.", "#/health"]);
    }
    found.push(...concerns(figures ?? new Map()).map((one) => [...one, "#/health"]));
    for (const row of overview.feed.filter((one) => one.stale)) {
        found.push(["warn", row.stale_events > 0 ? `${sportName(row.sport)}: customers ask for events whose odds are old`
            : `${sportName(row.sport)}: nothing is published any more`, `#/feed/${row.sport}`]);
    }
    return found;
}

const alarmList = (found) => (found.length === 0 ? h("p", { class: "notice good" }, "Nothing is wrong.")
    : found.map(([kind, text, to]) => h("p", { class: `notice ${kind}` }, h("a", { href: to }, text))));

/* What a new system lacks: done or not, what, the command, and its page. Empty: nothing. */
async function firstSteps(page, overview) {
    const [customers, providers, games] = await Promise.all(["customers", "providers", "games"].map((path) => get(path, { limit: 200 }, page.signal)));
    const steps = [
        [true, "The platform store", "croupier migrate", "#/health"],
        [customers.items.length > 0, "A customer", "croupier customer add \"Acme\" --cidr 203.0.113.0/24 --casino", "#/customers/new"],
        [customers.items.some((one) => one.keys > 0), "Its key", "croupier key issue cus_…", "#/customers"],
        [overview.feed.some((one) => one.age_seconds !== null), "A catalog with its odds", "croupier feed catalog cricket events.json", "#/feed"],
        [providers.items.length > 0, "A provider, for the casino", "croupier provider add acme --name Acme --launch-url https://… --secret -", "#/casino/providers/new"],
        [games.items.length > 0, "Its games", "croupier game import games.json", "#/casino/import"],
    ];
    return steps.every(([done]) => done) ? [] : steps;
}

const stepList = (steps) => h("section", { class: "steps" }, h("h2", null, "First steps"), h("ol", null, steps.map(([done, text, command, to]) =>
    h("li", null, badge(done ? "good" : "idle", done ? "✔ done" : "to do"), h("a", { href: to }, text), done ? null : h("code", null, command)))));

function drawCharts(charts, { at, series, window_seconds: window }) {
    for (const chart of charts) {
        chart.drawn.show(at, chart.series.map(([name, label, colour]) => ({ label, values: series[name], colour })), chart.now ? 0 : window);
    }
}

const REASONS = "A fixed word for each cause; docs/reasons.md says what happened and what to do. The log has it as reason.";

const refusalTable = (rows) => (rows.length === 0 ? empty("No request was refused since the start.") : table([
    { label: "Reason", value: (row) => h("code", null, row.reason) },
    { label: "Last hour", number: true, value: (row) => number(row.last_hour) },
    { label: "Since the start", number: true, value: (row) => number(row.total) },
], [...rows].sort((a, b) => b.last_hour - a.last_hour || b.total - a.total), { caption: "Refusals by reason" }));

const feedTable = (rows) => table([
    { label: "Sport", value: (row) => h("a", { href: `#/feed/${row.sport}` }, sportName(row.sport)) },
    { label: "Last published", number: true, value: (row) => (row.age_seconds === null ? "never" : `${duration(row.age_seconds)} ago`) },
    { label: "State", value: (row) => (row.stale ? badge("warn", "old") : row.age_seconds === null ? badge("idle", "nothing yet") : badge("good", "served")) },
], rows, { caption: "Age of the feed by sport" });

export async function overviewPage(page) {
    const alarms = h("div", { "aria-live": "polite" });
    const reasons = h("div");
    const feed = h("div");
    const charts = CHARTS.map((chart) => ({ ...chart, drawn: graph(page, chart) }));
    let span = page.query.span in SPANS ? page.query.span : "minutes";
    let overview = null;
    let steps = null; // of a new system; null: not asked yet
    const house = { health: undefined, ledger: undefined, figures: undefined }; // undefined: not asked yet; null: not answered

    function showAlarms() {
        // Said aloud only when it is news: what has not changed is left in place.
        const found = wrongs(overview, house);
        const said = JSON.stringify([found, steps, house.figures === undefined]);
        if (alarms.dataset.shown !== said) {
            alarms.dataset.shown = said;
            fill(alarms, found.length === 0 && (steps === null || steps.length > 0 || house.figures === undefined) ? null : alarmList(found),
                steps?.length > 0 && silence() === 0 ? stepList(steps) : null);
        }
    }

    function show() {
        showAlarms();
        fill(reasons, refusalTable(overview.refusals));
        fill(feed, feedTable(overview.feed));
        drawCharts(charts, overview.history);
    }

    async function lookAtSteps() {
        if (overview !== null && (steps === null || steps.length > 0)) {
            steps = await firstSteps(page, overview).catch(() => steps);
        }
    }

    const again = follow(page, "overview", {
        query: () => ({ span }),
        show(answer) {
            const first = overview === null;
            overview = answer;
            show();
            if (first) {
                lookAtSteps();
            }
        },
        refused(error) {
            alarms.dataset.shown = "";
            fill(alarms, problem(error));
        },
    });
    const spans = choice("The", SPANS, span, (value) => {
        span = value;
        page.remember({ span: value });
        again();
    });
    page.every(HOUSE_SECONDS, async () => {
        const ask = (path) => get(path, {}, page.signal).catch(() => null);
        [house.health, house.ledger, house.figures] = await Promise.all([ask("health"), ask("ledger"), metrics(page.signal).catch(() => null)]);
        await lookAtSteps();
    });
    page.every(1, async () => {
        if (overview !== null) {
            showAlarms();
        }
    });
    return { title: "Overview", actions: spans, content: [alarms,
        h("div", { class: "graphs" }, charts.map((chart) => chart.drawn.element)),
        h("div", { class: "columns" }, section("Refused, by reason", h("p", { class: "quiet" }, REASONS), reasons), refusals(page, "denials")), section("Feed", feed)] };
}

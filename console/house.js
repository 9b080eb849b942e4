// The audit, the health of what croupier stands on, and the settings in force.
import { get, metrics } from "./api.js";
import { ago, badge, bytes, copyable, duration, facts, fill, h, number, time, words } from "./dom.js";
import { customerLink } from "./names.js";
import { choice, day, empty, later, list, problem, searchField, section, table } from "./parts.js";

// ---- audit ----

const written = (value) => (value === null || value === undefined || value === "" ? "–" : typeof value === "string" ? value.replaceAll("\n", " ") : JSON.stringify(value));

/* A value of a record as people read it, by the name that the store has for it. */
function readable(name, value) {
    if (/_ms$/.test(name) && Number(value) > 0) {
        return time(new Date(Number(value)).toISOString());
    }
    if (/_bps$/.test(name) && typeof value === "number") {
        return `${(value / 100).toFixed(2)} %`;
    }
    if (name === "customer_id" && value) {
        return customerLink(value);
    }
    return typeof value === "boolean" ? (value ? "yes" : "no") : typeof value === "number" ? number(value)
        : Array.isArray(value) ? value.map(written).join(", ") || "–" : written(value);
}

/* What a change changed: of each field what it was and what it is. */
function difference(row) {
    const names = [...new Set([...Object.keys(row.before ?? {}), ...Object.keys(row.after ?? {})])];
    if (names.length === 0) {
        return "";
    }
    const lines = names.map((name) => h("div", null, h("span", { class: "quiet" }, words(name.replace(/_(ms|bps|id)$/, ""))), " ",
        row.before && [h("del", null, readable(name, row.before[name])), " → "], row.after && h("ins", null, readable(name, row.after[name]))));
    const called = row.after?.name ?? row.after?.label ?? row.after?.reference;
    const summary = called && !row.before ? `“${called}”` : `${names.length} fields`;
    return names.length <= 3 ? lines : h("details", null, h("summary", null, summary), lines);
}

/* What was done, in a word, by what the row has of before and after. */
const MADE = { key: "issued", token: "issued", verification: "verified", block: "blocked", credential: "made" };
const became = (row, name) => Boolean(row.after?.[name]) && !row.before?.[name];
function deed(row) {
    if (row.before === null) {
        return row.object.startsWith("ses_") ? "signed in" : MADE[row.kind] ?? "added";
    }
    const only = Object.keys(row.after ?? {}).join();
    return became(row, "removed") ? "removed" : became(row, "revoked_ms") ? "revoked" : became(row, "blocked_ms") ? "blocked"
        : row.before.blocked_ms && row.after?.blocked_ms === null ? "unblocked" : became(row, "ended_ms") ? (row.command === "sign in" ? "used" : "ended")
            : became(row, "secret_kid") ? "new secret" : only === "enabled" ? (row.after.enabled ? "enabled" : "disabled") : "changed";
}

/* A change through the API has its method and path for a command; `who` says already that it came from there. */
const command = (row) => (/^[A-Z]+ |^sign in$/.test(row.command) ? null : h("code", { class: "whole" }, `croupier ${row.command}`));

const OBJECTS = { address: "addresses", provider: "casino/providers", conduct: "casino/providers", game: "casino/games", player: "players", block: "players" };

function objectLink(row) {
    const place = OBJECTS[row.kind];
    const kind = `${row.kind === "credential" ? (row.object.startsWith("lnk_") ? "link" : "session") : row.kind.replaceAll("_", " ")} `;
    return [kind, row.kind === "verification" ? h("a", { href: "#/ledger" }, row.object) : /^cus_/.test(row.object) ? customerLink(row.object)
        : place ? h("a", { href: `#/${place}/${encodeURIComponent(row.object)}` }, row.object) : copyable(row.object)];
}

const KINDS = { "": "any", customer: "customers", key: "keys", address: "addresses", provider: "providers", game: "games", "list of games": "lists of games",
    block: "blocks", verification: "verifications", operator: "operators", credential: "links and sessions", token: "tokens", conduct: "conduct of sandboxes" };

export async function auditPage(page) {
    const { object: asked, who: author, since: from, kind, day: on } = page.query;
    const shown = list(page, { path: "audit", query: { limit: 50, object: asked, who: author, since: from, kind, day: on }, caption: "Changes, newest first", next: "before",
        extra: [searchField("Object's id", page.query.object, (object) => shown.reload({ object })),
            searchField("Operator or user", page.query.who, (who) => shown.reload({ who })),
            searchField("Since: 12h, 7d, 2026-11-01", page.query.since, (since) => shown.reload({ since })),
            choice("What", KINDS, kind, (chosen) => shown.reload({ kind: chosen })), day("Day", on, (chosen) => shown.reload({ day: chosen }))],
        nothing: empty("Nothing was changed that fits.", h("a", { href: "#/audit", onclick: () => page.again() }, "Show all")),
        columns: [
            { label: "When", when: (row) => row.at },
            { label: "By", value: (row) => h("span", { class: row.who.length <= 20 && "whole" }, row.who) },
            { label: "Done", value: (row) => h("span", { class: "whole" }, deed(row)) },
            { label: "Object", value: objectLink },
            { label: "Change", value: difference },
            { label: "Command", value: command },
        ] });
    return { title: "Audit", content: [shown,
        !page.may("owner") && h("p", { class: "quiet" }, "Owners also see the changes of operators, their links and sessions.")] };
}

// ---- health ----

const stateBadge = (state) => badge(state === "ok" ? "good" : "bad", state === "ok" ? "answers" : state === "read_only" ? "takes no changes" : state ?? "unknown");
const STORES = [["odds_store", "odds", "Odds store", "Customers get 503 on sports routes until it answers. Is the store's process running, and its disk not full?"],
    ["platform_store", "platform", "Platform store", "Nothing can be changed and no money moves until it answers. Policies in memory go on for a second."]];
const LITTLE = 0.1; // of a disk

const disk = (figures, store, what) => figures.get(`croupier_store_disk_${what}_bytes{store="${store}"}`);
const share = (figures, store) => disk(figures, store, "free") / disk(figures, store, "size"); // NaN: not known
const percent = (figures, store) => `${Math.floor(100 * share(figures, store))} % free`;

function storeTable(health, figures) {
    return table([
        { label: "Store", value: ([, , title]) => title },
        { label: "State", value: ([name, store]) => [stateBadge(health[name].status),
            store === "odds" && figures.get("croupier_odds_asking") === 1 && [" ", badge("warn", "asked at each request")]] },
        { label: "Takes", number: true, value: ([name]) => (health[name].bytes === null ? "a server's" : bytes(health[name].bytes)) },
        { label: "Disk free", number: true, value: ([, store]) => bytes(disk(figures, store, "free")) },
        { label: "Disk", number: true, value: ([, store]) => bytes(disk(figures, store, "size")) },
        { label: "Room", value: ([, store]) => (disk(figures, store, "size") === undefined ? "–"
            : badge(share(figures, store) < LITTLE ? "bad" : "good", percent(figures, store))) },
    ], STORES.filter(([name]) => health[name]), { caption: "Stores" });
}

const LISTENERS = [["public", "Customers' listener"], ["provider", "Providers' listener"], ["operator", "Operators' listener"]];
const SOON_DAYS = 21;

const expiryOf = (figures, listener) => figures.get(`croupier_tls_certificate_expiry_timestamp_seconds{listener="${listener}"}`);
const daysLeft = (expiry) => (expiry - Date.now() / 1000) / 86400;

function certificateOf(figures, listener) {
    const expiry = expiryOf(figures, listener);
    const days = daysLeft(expiry);
    return !expiry ? "no HTTPS here" : [badge(days < 0 ? "bad" : days < SOON_DAYS ? "warn" : "good", days < 0 ? "has run out" : `for ${Math.floor(days)} days`), " ",
        time(new Date(expiry * 1000).toISOString())];
}

function verified(ledger, scope) {
    const last = ledger?.verified[scope];
    return ledger === null ? "not known" : !last ? "never"
        : [last.sound ? badge("good", "sound") : badge("bad", "broken"), " ", h("a", { href: "#/ledger" }, ago(last.ended_at))];
}

function instanceFacts(health, figures) {
    const of = (name) => figures.get(name);
    return facts([["Version", health.version], ["Commit", h("code", null, health.commit)], ["Process", String(health.pid)], ["Started", time(health.started_at)],
        ["Up for", duration((Date.now() - Date.parse(health.started_at)) / 1000)], ["Memory", bytes(of("process_resident_memory_bytes"))],
        ["Processor time", duration(of("process_cpu_seconds_total"))],
        ["Connections", `${number(of("croupier_connections"))} of ${number(of("croupier_connections_max"))}`],
        ["Open files", `${number(of("process_open_fds"))} of ${number(of("process_max_fds"))}`],
        ["Log lines dropped", number(of("croupier_log_lines_dropped_total"))]]);
}

const LATE_SECONDS = 36 * 3600; // as in dist/prometheus/croupier.rules.yml
const backupAge = (figures) => figures.get("croupier_backup_age_seconds"); // NaN: none is known; undefined: it is not croupier's task
const isLate = (age) => Number.isNaN(age) || age > LATE_SECONDS;

function backupText(figures) {
    const age = backupAge(figures);
    const text = Number.isNaN(age) ? "never" : `${duration(age)} ago`;
    return age === undefined ? "by PostgreSQL's own tools" : isLate(age) ? badge("warn", text) : text;
}

/** What this page shows in red or amber beside the stores' answers, as sentences for the overview: [kind, text] each. */
export function concerns(figures) {
    const age = backupAge(figures);
    return [
        ...STORES.filter(([, store]) => share(figures, store) < LITTLE).map(([, store, title]) => ["bad", `${title}: its disk has ${percent(figures, store)}.`]),
        ...LISTENERS.map(([name, title]) => [title, daysLeft(expiryOf(figures, name))]).filter(([, days]) => days < SOON_DAYS)
            .map(([title, days]) => [days < 0 ? "bad" : "warn", `${title}: its certificate ${days < 0 ? "has run out" : `is good for ${Math.floor(days)} days`}.`]),
        ...(figures.get("croupier_odds_asking") === 1 ? [["warn", "The odds store reports no changes, so it is asked at each request."]] : []),
        ...(isLate(age) ? [["warn", Number.isNaN(age) ? "No backup was made yet." : `The last backup was made ${duration(age)} ago.`]] : []),
    ];
}

export async function healthPage(page) {
    const place = h("div");
    let wrong = null;
    page.every(2, async () => {
        try {
            const [health, figures, ledger] = await Promise.all([get("health", {}, page.signal), metrics(page.signal),
                get("ledger", {}, page.signal).catch(() => null)]);
            wrong = null;
            fill(place, STORES.filter(([name]) => health[name].status !== "ok").map(([name, , title, advice]) =>
                h("div", { class: "notice bad" }, h("p", null, h("strong", null, `${title}: `), health[name].message ?? "it does not answer"), h("p", null, advice))),
            section("Stores", storeTable(health, figures)),
            section("This instance", instanceFacts(health, figures)),
            h("div", { class: "columns" }, section("Backup and verification", facts([["Last backup", backupText(figures)], ["Whole ledger verified", verified(ledger, "whole")],
                ["Newest entries verified", verified(ledger, "recent")]])),
            section("Certificates", facts(LISTENERS.map(([name, title]) => [title, certificateOf(figures, name)])))));
        } catch (error) {
            if (error.name !== "AbortError" && error.message !== wrong) { // which is read aloud once
                wrong = error.message;
                fill(place, problem(error));
            }
        }
    });
    return { title: "Health", content: place };
}

// ---- settings ----

export async function settingsPage(page) {
    const place = later(page, async () => {
        const { items } = await get("settings", {}, page.signal);
        const sections = [...new Set(items.map((item) => item.section))];
        return sections.map((name) => section(`[${name}]`, table([
            { label: "Setting", value: (item) => h("code", { class: "whole" }, item.name) },
            { label: "Meaning", value: (item) => item.what },
            { label: "Value", value: (item) => (item.secret ? badge("idle", item.value ? "hidden" : "not set") : h("code", null, written(item.value === "" ? null : item.value))) },
            { label: "State", value: (item) => (item.default ? h("span", { class: "quiet whole" }, "default") : badge("good", "set")) },
        ], items.filter((item) => item.section === name), { caption: `Settings of ${name}` })));
    });
    return { title: "Settings", content: [h("p", { class: "quiet" }, "As they are in force now. They are changed in the configuration file or the environment; ",
        h("code", null, "croupier reload"), " takes over what may change while it runs."), place] };
}

// The audit, the health of what croupier stands on, and the settings in force.
import { get } from "./api.js";
import { badge, duration, facts, fill, h, time, words } from "./dom.js";
import { empty, later, list, problem, searchField, section, table } from "./parts.js";

// ---- audit ----

const written = (value) => (value === null || value === undefined ? "–" : typeof value === "string" ? value.replaceAll("\n", " ") : JSON.stringify(value));

/* What a change changed: of each field what it was and what it is. */
function difference(row) {
    const names = [...new Set([...Object.keys(row.before ?? {}), ...Object.keys(row.after ?? {})])];
    if (names.length === 0) {
        return "";
    }
    const lines = names.map((name) => h("div", null, h("b", null, words(name)), " ",
        row.before && [h("del", null, written(row.before[name])), " "], row.after && h("ins", null, written(row.after[name]))));
    return names.length <= 3 ? lines : h("details", null, h("summary", null, row.before ? `${names.length} fields` : "added"), lines);
}

const OBJECTS = { customer: "customers", address: "addresses", provider: "casino/providers", game: "casino/games", player: "players" };

function objectLink(row) {
    const place = OBJECTS[row.kind];
    if (row.kind === "verification") {
        return [`${row.kind} `, h("a", { href: "#/ledger" }, row.object)];
    }
    return [`${row.kind} `, place ? h("a", { href: `#/${place}/${encodeURIComponent(row.object)}` }, row.object) : row.object];
}

export async function auditPage(page) {
    const shown = list(page, { path: "audit", query: { limit: 50, object: page.query.object, who: page.query.who, since: page.query.since }, caption: "Changes, newest first", next: "before",
        extra: [searchField("Object's id", page.query.object, (object) => shown.reload({ object })),
            searchField("Operator or user", page.query.who, (who) => shown.reload({ who })),
            searchField("Since: 12h, 7d, 2026-11-01", page.query.since, (since) => shown.reload({ since }))],
        nothing: empty("Nothing was changed that fits.", h("a", { href: "#/audit", onclick: () => page.again() }, "Show all")),
        columns: [
            { label: "When", value: (row) => time(row.at) },
            { label: "By", value: (row) => row.who },
            { label: "With", value: (row) => h("code", null, row.command) },
            { label: "Object", value: objectLink },
            { label: "Change", value: difference },
        ] });
    return { title: "Audit", content: [shown,
        !page.may("owner") && h("p", { class: "quiet" }, "Owners also see the changes of operators, their links and sessions.")] };
}

// ---- health ----

const stateBadge = (state) => badge(state === "ok" ? "good" : "bad", state ?? "unknown");
const STORES = [["odds_store", "Odds store", "Customers get 503 on sports routes until it answers. Is the store's process running, and its disk not full?"],
    ["platform_store", "Platform store", "Nothing can be changed and no money moves until it answers. Policies in memory go on for a second."]];

export async function healthPage(page) {
    const place = h("div");
    let wrong = null;
    page.every(2, async () => {
        try {
            const health = await get("health", {}, page.signal);
            wrong = null;
            fill(place, h("p", null, stateBadge(health.status)),
                STORES.filter(([name]) => health[name]).map(([name, title, advice]) => section(title, h("p", null, stateBadge(health[name].status), " ",
                    health[name].message ?? ""), health[name].status !== "ok" && h("p", { class: "notice warn" }, advice))),
                section("This instance", facts([["Version", health.version], ["Started", time(health.started_at)],
                    ["Up for", health.started_at && duration((Date.now() - Date.parse(health.started_at)) / 1000)]])),
                (health.instances ?? []).length > 0 && section("Instances", table(Object.keys(health.instances[0]).map((name) => ({ label: words(name),
                    value: (row) => (/_at$/.test(name) ? time(row[name]) : written(row[name])) })), health.instances, { caption: "Instances" })));
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
            { label: "Setting", value: (item) => h("code", null, item.name) },
            { label: "Meaning", value: (item) => item.what },
            { label: "Value", value: (item) => (item.secret ? badge("idle", item.value ? "hidden" : "not set") : h("code", null, written(item.value === "" ? null : item.value))) },
            { label: "State", value: (item) => (item.default ? h("span", { class: "quiet" }, "default") : badge("good", "set")) },
        ], items.filter((item) => item.section === name), { caption: `Settings of ${name}` })));
    });
    return { title: "Settings", content: [h("p", { class: "quiet" }, "As they are in force now. They are changed in the configuration file or the environment; ",
        h("code", null, "croupier reload"), " takes over what may change while it runs."), place] };
}

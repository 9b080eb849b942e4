// Players: found by whatever somebody has of them, and what their money did.
import { get, patch } from "./api.js";
import { amount, badge, facts, fill, h, number, time } from "./dom.js";
import { action, choice, confirm, empty, list, problem, say, section, table } from "./parts.js";
import { graph } from "./graph.js";

/* What may be at hand, and the questions of the API that it makes. */
const WAYS = {
    reference: { label: "the customer's reference", fields: [["customer", "Customer's id"], ["reference", "Reference"]] },
    launch: { label: "a launch", fields: [["launch", "Launch's id"]] },
    subject: { label: "the provider's id", fields: [["provider", "Provider's id"], ["subject", "Provider's id of the player"]] },
    id: { label: "the player's id", fields: [["id", "Player's id"]] },
    customer: { label: "a customer's players", fields: [["customer", "Customer's id"], ["q", "Part of a reference"]] },
};

const COLUMNS = [
    { label: "Player", value: (row) => h("a", { href: `#/players/${row.player_id}` }, h("code", null, row.player_id)) },
    { label: "Reference", value: (row) => row.player_reference },
    { label: "State", value: (row) => (row.blocked_at ? badge("bad", "blocked") : "") },
    { label: "Balance", number: true, value: (row) => amount(row.balance_minor, row.currency_exponent, row.currency) },
    { label: "Entries", number: true, value: (row) => number(row.entries) },
    { label: "Customer", value: (row) => h("a", { href: `#/customers/${row.customer}` }, h("code", null, row.customer)) },
    { label: "Since", value: (row) => time(row.created_at) },
];

export async function playersPage(page) {
    const found = h("div", { "aria-live": "polite" });
    const inputs = h("span", { class: "controls" });
    let way = Object.keys(WAYS).find((one) => one === page.query.by) ?? (page.query.customer ? "customer" : "reference");

    function show(given) {
        fill(inputs, WAYS[way].fields.map(([name, label], at) => h("input", { type: "text", name, placeholder: label, "aria-label": label,
            value: given[name] ?? "", autocomplete: "off", spellcheck: "false", "data-search": at === 0 })));
    }

    async function find(given) {
        if (way === "id") {
            page.go(`/players/${given.id}`);
            return;
        }
        page.remember({ by: way, ...given });
        if (way === "customer") {
            fill(found, list({ ...page, remember: () => {} }, { path: "players", query: given, columns: COLUMNS, caption: "Players",
                nothing: empty("This customer has no such player. A player begins with a first launch.") }));
            return;
        }
        try {
            const players = (await get("players", given, page.signal)).items;
            fill(found, players.length === 0 ? empty("There is no such player.") : table(COLUMNS, players, { caption: "Players" }));
        } catch (error) {
            fill(found, error.status === 404 ? empty("There is no such player.") : problem(error));
        }
    }

    const chosen = choice("Find by", Object.fromEntries(Object.entries(WAYS).map(([key, one]) => [key, one.label])), way, (value) => {
        way = value;
        show({});
        fill(found);
    });
    const search = h("form", { class: "controls", novalidate: true, role: "search", onsubmit: (event) => {
        event.preventDefault();
        const given = Object.fromEntries([...new FormData(event.target)].map(([name, value]) => [name, value.trim()]));
        const absent = WAYS[way].fields.find(([name]) => given[name] === "" && name !== "q");
        if (absent) {
            fill(found, problem({ message: `${absent[1]} is needed.` }));
            event.target.elements[absent[0]].focus();
        } else {
            find(given);
        }
    } }, chosen, inputs, h("button", { class: "main" }, "Find"));
    show(page.query);
    const { by, ...given } = page.query;
    if (Object.keys(given).length > 0) {
        find(given);
    }
    return { title: "Players", content: [search, found] };
}

// ---- one player ----

function statementColumns(player) {
    const money = (minor) => (minor === null || minor === undefined ? "" : amount(minor, player.currency_exponent));
    return [
        { label: "#", number: true, value: (entry) => (entry.sequence ? number(entry.sequence) : "") },
        { label: "When", value: (entry) => time(entry.created_at) },
        { label: "Operation", value: (entry) => entry.operation },
        { label: "State", value: (entry) => badge(entry.outcome === "applied" ? "good" : "idle", entry.outcome) },
        { label: "Movement", number: true, value: (entry) => money(entry.movement_minor) },
        { label: "Balance", number: true, value: (entry) => money(entry.balance_minor) },
        { label: "Transaction", value: (entry) => h("code", null, entry.transaction_id) },
        { label: "Refers to", value: (entry) => entry.reference_transaction_id && h("code", null, entry.reference_transaction_id) },
        { label: "Moved by", value: (entry) => entry.provider ?? "customer" },
        { label: "Game, round", value: (entry) => [entry.game_id, entry.round_id].filter(Boolean).join(", ") },
    ];
}

async function block(page, path, player) {
    const blocked = player.blocked_at !== null;
    if (!blocked && !await confirm("Block this player?",
        "Stakes and launches for money are refused, by customer and provider. Wins, rollbacks and payouts still pass.", "Block")) {
        return;
    }
    await patch(path, { blocked: !blocked }, player);
    say(blocked ? "The player is unblocked." : "The player is blocked.");
    page.again();
}

function curve(page, player, path) {
    const drawn = graph(page, { title: "Balance", unit: player.currency,
        write: (value) => (value === null ? "–" : amount(Math.round(value * 10 ** player.currency_exponent), player.currency_exponent)) });
    get(`${path}/statement`, { limit: 200 }, page.signal).then(({ items }) => {
        const entries = items.filter((entry) => entry.balance_minor !== null && entry.balance_minor !== undefined);
        drawn.element.hidden = entries.length === 0;
        drawn.show(entries.map((entry) => entry.created_at.slice(5, 19).replace("T", " ")), [{ label: "balance", colour: 1,
            values: entries.map((entry) => entry.balance_minor / 10 ** player.currency_exponent) }]);
    }, () => { drawn.element.hidden = true; });
    return drawn.element;
}

export async function playerPage(page) {
    const path = `players/${encodeURIComponent(page.id)}`;
    const player = await get(path, {}, page.signal);
    const blocked = player.blocked_at !== null;
    return { title: `Player ${player.player_reference}`, content: [
        h("p", { class: "controls" }, blocked ? badge("bad", "blocked") : badge("good", "may play"), page.may("operator")
            && action(blocked ? "Unblock" : "Block", () => block(page, path, player), { class: blocked ? "main" : "danger" })),
        facts([["Balance", h("strong", null, amount(player.balance_minor, player.currency_exponent, player.currency))],
            ["Id", h("code", null, player.player_id)], ["Customer", h("a", { href: `#/customers/${player.customer}` }, player.customer)],
            ["Entries", number(player.entries)], ["Since", time(player.created_at)], blocked ? ["Blocked", time(player.blocked_at)] : null,
            ["Changes", h("a", { href: `#/audit?object=${player.player_id}` }, "in the audit")]]),
        section("Statement", curve(page, player, path), list(page, { path: `${path}/statement`, query: { limit: 50 }, caption: "Statement, newest first",
            next: "before", order: (entries) => [...entries].reverse(), columns: statementColumns(player), nothing: empty("No money was moved yet.") })),
        section("Launches", (player.launches ?? []).length === 0 ? empty("No game was launched for money.") : table([
            { label: "Launch", value: (one) => h("code", null, one.launch_id) },
            { label: "Game", value: (one) => h("a", { href: `#/casino/games/${one.game_id}` }, one.game_id) },
            { label: "Provider", value: (one) => h("a", { href: `#/casino/providers/${one.provider}` }, one.provider) },
            { label: "Provider's id of the player", value: (one) => h("code", null, one.provider_player_id) },
            { label: "When", value: (one) => time(one.created_at) },
        ], player.launches, { caption: "Launches, newest first" })),
    ] };
}

// Players: found by whatever somebody has of them, and what their money did.
import { get, patch } from "./api.js";
import { ago, amount, badge, copyable, facts, fill, h, moment, number, signed, time } from "./dom.js";
import { action, ask, choice, counted, day, empty, follow, history, list, problem, say, section, table } from "./parts.js";
import { graph } from "./graph.js";
import { customerLink } from "./names.js";

const playerLink = (row) => h("a", { href: `#/players/${row.player_id}` }, row.player_reference);

const COLUMNS = [
    { label: "Reference", value: playerLink },
    { label: "Balance", number: true, value: (row) => amount(row.balance_minor, row.currency_exponent, row.currency) },
    { label: "State", value: (row) => (row.blocked_at ? badge("bad", "blocked") : "") },
    { label: "Customer", value: (row) => customerLink(row.customer) },
    { label: "Last active", value: (row) => ago(row.last_active_at) },
    { label: "Entries", number: true, value: (row) => number(row.entries) },
    { label: "Since", when: (row) => row.created_at },
    { label: "Id", value: (row) => copyable(row.player_id) },
];

export async function playersPage(page) {
    const { customer } = page.query;
    const listed = list(page, { path: "players", query: { q: page.query.q, customer }, caption: "Players, the last active first", columns: COLUMNS,
        search: "Beginning of the reference, or an id",
        extra: customer && h("span", { class: "inline" }, "of ", customerLink(customer), " · ", h("a", { href: "#/players" }, "of all customers")),
        nothing: empty(`${customer ? "This customer has" : "There are"} no players yet. A player begins with a first launch.`) });
    page.every(10, async () => listed.refresh());
    return { title: "Players", content: listed };
}

// ---- the statement ----

/* A bet, its wins and its rollback belong together: by their round, or by what they refer to. A
 * provider's win or rollback may name its round without the game. */
function groupsOf(entries) {
    const groups = new Map();
    const groupOf = new Map(); // of who moved the money, and the transaction's id there
    const groupOfRound = new Map();
    for (const entry of entries) { // in their order
        const round = entry.round_id && `${entry.provider} ${entry.round_id}`;
        const key = groupOf.get(`${entry.provider} ${entry.reference_transaction_id}`) ?? (entry.game_id ? undefined : groupOfRound.get(round))
            ?? (round ? `${round} ${entry.game_id}` : `#${entry.sequence}`);
        groupOf.set(`${entry.provider} ${entry.transaction_id}`, key);
        if (round) {
            groupOfRound.set(round, key);
        }
        groups.set(key, [...(groups.get(key) ?? []), entry]);
    }
    const gameOf = (of) => of.find((one) => one.game_id)?.game_id;
    return [...groups].map(([key, of]) => ({ key, of, game: gameOf(of), last: of.at(-1), net: of.reduce((sum, one) => sum + one.movement_minor, 0) }))
        .sort((a, b) => b.last.sequence - a.last.sequence);
}

const KINDS = { promo: "Promo", jackpot: "Jackpot", adjustment: "Adjustment" };

const sumOf = (group, operation) => group.of.filter((one) => one.operation === operation).reduce((sum, one) => sum + one.movement_minor, 0);

/* What happened, in the words of docs/wallet.md. */
function whatOf({ of }) {
    const has = (operation) => of.some((one) => one.operation === operation);
    if (!of.some((one) => one.game_id || one.round_id || one.provider)) {
        return has("ROLLBACK") ? "Rolled back" : of[0].operation === "CREDIT" ? "Transfer in" : "Transfer out";
    }
    return !has("DEBIT") ? (has("ROLLBACK") ? "Rolled back" : KINDS[of[0].kind] ?? "Win") : has("ROLLBACK") ? "Bet, rolled back"
        : !has("CREDIT") ? "Bet" : of.some((one) => one.operation === "CREDIT" && one.movement_minor > 0) ? "Bet and win" : "Bet, lost";
}

function detailOf(player, group) {
    const money = (minor) => amount(Math.abs(minor), player.currency_exponent);
    const parts = [["DEBIT", "stake"], ["CREDIT", "won"], ["ROLLBACK", "given back"]].map(([operation, word]) =>
        [word, sumOf(group, operation)]).filter(([, sum]) => sum !== 0);
    return group.of.length > 1 ? h("small", null, parts.map(([word, sum]) => `${word} ${money(sum)}`).join(", ")) : null;
}

function entryFacts(player, entry) {
    return h("div", { class: "entry" }, facts([[entry.operation, h("strong", null, signed(entry.movement_minor, player.currency_exponent))],
        ["Balance after", amount(entry.balance_minor, player.currency_exponent)], ["When", time(entry.created_at)],
        ["Transaction", copyable(entry.transaction_id)], entry.reference_transaction_id ? ["Refers to", copyable(entry.reference_transaction_id)] : null,
        ["Moved by", entry.provider ?? "the customer"], entry.round_id ? ["Round", copyable(entry.round_id)] : null,
        KINDS[entry.kind] ? ["Kind", KINDS[entry.kind]] : null, entry.round_ended ? ["Round ended", "yes"] : null,
        entry.launch_id ? ["Launch", copyable(entry.launch_id)] : null, ["Entry", number(entry.sequence)],
        entry.outcome === "applied" ? null : ["Outcome", entry.outcome]]));
}

const narrow = matchMedia("(max-width: 760px)");

/* On a phone amount and balance stand first. */
function statementColumns(player) {
    const columns = [
        { label: "When", when: (group) => group.last.created_at },
        { label: "What", value: (group) => [whatOf(group), " ", detailOf(player, group)] },
        { label: "Game", value: (group) => (group.game ? h("a", { href: `#/casino/games/${group.game}` }, group.game) : "") },
        { label: "Amount", number: true, value: (group) => h("b", { class: group.net > 0 ? "in" : null }, signed(group.net, player.currency_exponent)) },
        { label: "Balance", number: true, value: (group) => amount(group.last.balance_minor, player.currency_exponent) },
    ];
    const what = { label: "What, when (UTC)", value: (group) => [whatOf(group), h("br"), h("small", null, time(group.last.created_at, true))] };
    return narrow.matches ? [columns[3], columns[4], what] : columns;
}

function statementTable(player, groups, opened) {
    const toggle = (group, row, button) => {
        const open = !opened.has(group.key);
        opened[open ? "add" : "delete"](group.key);
        button.setAttribute("aria-expanded", String(open));
        if (open) {
            row.after(detailsRow(group));
        } else {
            row.nextElementSibling.remove();
        }
    };
    const columns = statementColumns(player);
    const detailsRow = (group) => h("tr", { class: "details" }, h("td", { colspan: columns.length + 1 }, group.of.map((entry) => entryFacts(player, entry))));
    const shown = table([{ label: h("span", { class: "unseen" }, "Details"), value: (group) => h("button", { type: "button", class: "open",
        "aria-expanded": String(opened.has(group.key)), "aria-label": `${whatOf(group)}, entry ${group.last.sequence}`, "data-key": group.key }) },
    ...columns], groups, { caption: "Statement, newest first" });
    [...shown.querySelectorAll("tbody tr")].forEach((row, at) => {
        const button = row.querySelector("button.open");
        row.classList.add("opens");
        row.addEventListener("click", (event) => event.target.closest("a, .copy") === null && getSelection().isCollapsed && toggle(groups[at], row, button));
        if (opened.has(groups[at].key)) {
            row.after(detailsRow(groups[at]));
        }
    });
    return shown;
}

const ENTRIES = 200;
const OF_KIND = { "": "any", DEBIT: "debits", CREDIT: "credits", ROLLBACK: "rollbacks", win: "wins by providers", promo: "promos", jackpot: "jackpots",
    adjustment: "adjustments" };

/* Entries that are there stay, and newer ones come to them by themselves. A filter begins again. */
function statement(page, path, first) {
    const drawn = graph(page, { title: "Balance", unit: first.currency, stepped: true, zero: false,
        write: (value) => (value === null ? "–" : amount(Math.round(value * 10 ** first.currency_exponent), first.currency_exponent)) });
    const place = h("div");
    const opened = new Set();
    const entries = new Map();
    let player = first;
    let older = null;
    let { kind, from, to } = page.query;
    const change = (name) => (chosen) => {
        ({ kind, from, to } = { kind, from, to, [name]: chosen });
        page.remember({ kind, from, to });
        entries.clear();
        renew();
    };
    const controls = h("div", { class: "controls" }, choice("Kind", OF_KIND, kind, change("kind")), day("From", from, change("from")), day("To", to, change("to")));

    function show() {
        const all = [...entries.values()].sort((a, b) => a.sequence - b.sequence);
        const groups = groupsOf(all);
        const focused = place.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
        drawn.element.hidden = all.length === 0;
        drawn.show(all.map((entry) => Date.parse(entry.created_at) / 1000), [{ label: "balance", colour: 1,
            values: all.map((entry) => entry.balance_minor / 10 ** player.currency_exponent) }]);
        fill(place, all.length > 0 ? statementTable(player, groups, opened)
            : empty(player.entries === 0 ? "No money was moved yet." : older === null ? "No entry is like that." : "No entry so far is like that."),
        (all.length > 0 || older !== null) && h("div", { class: "below" }, counted(all.length, player.entries, " entries"), older !== null
                && action("Show more", () => read(older))));
        place.querySelector(`[data-key="${CSS.escape(focused ?? "")}"]`)?.focus();
    }

    async function read(before) {
        const known = entries.size;
        const asked = { kind, from, to };
        const { items, next } = await get(`${path}/statement`, { limit: ENTRIES, before, ...asked }, page.signal);
        if (asked.kind !== kind || asked.from !== from || asked.to !== to) {
            return; // another filter was chosen since
        }
        if (items.length > 0 && known > 0 && before === undefined && !entries.has(items[0].sequence - 1) && !entries.has(items[0].sequence)) {
            entries.clear(); // so much came that some is missing between
        }
        items.forEach((entry) => entries.set(entry.sequence, entry));
        older = before !== undefined || known === 0 || entries.size === items.length ? next : older;
        show();
    }

    const renew = () => read().catch((error) => error.name !== "AbortError" && entries.size === 0 && fill(place, problem(error)));
    narrow.addEventListener("change", show, { signal: page.signal });
    return { content: [controls, drawn.element, place], async changed(now) {
        player = now;
        await renew();
    } };
}

// ---- one player ----

const REASON = { name: "reason", label: "Reason", hint: "Is shown with the block, and kept in the audit trail." };

function block(page, player) {
    ask(`Block ${player.player_reference}?`, "Stakes and launches for money are refused, by customer and provider. Wins, rollbacks and payouts still pass.", {
        label: "Block", fields: [REASON,
            { name: "until", label: "Until", placeholder: "30d", hint: "When the block ends by itself: 2027-01-31, or 30d from now. Empty: it has no end, also where it had one." },
            { name: "whole", label: "All currencies", kind: "check", hint: `Every player that ${player.customer} calls ${player.player_reference}, also a later one.` }],
        submit: async ({ whole, ...given }) => {
            await patch(`blocks/${whole ? `${player.customer}:${player.player_reference}` : player.player_id}`, { blocked: true, until: null, ...given });
            say("The player is blocked.");
            page.again();
        } });
}

function unblock(page, player, of) {
    const end = of.until === null ? "This block has no end." : `This block ends on ${moment(of.until)} UTC.`;
    ask(`Unblock ${player.player_reference} before the end?`, `${end} Say why it is taken away.`, { label: "Unblock", fields: [{ ...REASON, required: true }],
        submit: async (given) => {
            const { standing } = await patch(`blocks/${of.id}`, { blocked: false, early: true, ...given });
            say(`The block of ${of.id} is lifted.${standing === undefined ? "" : ` That of ${standing} is in force still.`}`);
            page.again();
        } });
}

const blockTable = (page, player) => table([
    { label: "Block", value: (one) => (one.by === "customer" ? "the customer's own, in every currency"
        : one.player_id === null ? "of the reference, in every currency" : "of this player") },
    { label: "Since", when: (one) => one.blocked_at },
    { label: "Until", when: (one) => one.until, never: "no end" },
    { label: "Reason", value: (one) => one.reason },
    { value: (one) => [history(one.id), one.by === "operator" && page.may("operator") && action("Unblock", () => unblock(page, player, one))] },
], player.blocks, { caption: "Blocks in force" });

const launchTable = (launches) => (launches.length === 0 ? empty("No game was launched for money.") : table([
    { label: "When", when: (one) => one.created_at },
    { label: "Game", value: (one) => h("a", { href: `#/casino/games/${one.game_id}` }, one.game_id) },
    { label: "Provider", value: (one) => h("a", { href: `#/casino/providers/${one.provider}` }, one.provider) },
    { label: "Launch", value: (one) => copyable(one.launch_id) },
    { label: "Provider's id of the player", value: (one) => copyable(one.provider_player_id) },
], launches, { caption: "Launches, newest first" }));

export async function playerPage(page) {
    const path = `players/${encodeURIComponent(page.id)}`;
    const player = await get(path, {}, page.signal);
    const [state, change, blocks, top] = [h("span"), h("span"), h("div"), h("div")];
    const launches = h("div");
    const money = statement(page, path, player);
    const showBlocks = (now) => {
        const blocked = now.blocks.length > 0;
        fill(state, blocked ? badge("bad", "blocked") : badge("good", "may play"));
        fill(change, page.may("operator") && action(blocked ? "Change the block" : "Block", () => block(page, now), { class: blocked ? null : "danger" }));
        fill(blocks, blocked && section("Blocks", blockTable(page, now)));
    };
    const show = (now) => {
        const shown = JSON.stringify(now.blocks);
        if (blocks.dataset.shown !== shown) { // what has not changed keeps the keyboard's place
            blocks.dataset.shown = shown;
            showBlocks(now);
        }
        fill(top, facts([["Balance", h("strong", { class: "large" }, amount(now.balance_minor, now.currency_exponent, now.currency))],
            ["Customer", customerLink(now.customer)], ["Last active", ago(now.last_active_at)], ["Since", time(now.created_at)],
            now.blocked_at ? ["Blocked", time(now.blocked_at)] : null, ["Id", copyable(now.player_id, 24)]]));
        fill(launches, launchTable(now.launches ?? []));
        money.changed(now);
    };
    show(player);
    follow(page, path, { show, refused: () => {} });
    return { title: `Player ${player.player_reference}`, state,
        actions: [h("a", { class: "button", href: `#/rounds?player=${player.player_id}&state=all` }, "Rounds played"), history(player.player_id), change],
        content: [top, blocks, section("Statement", money.content), section("Launches", launches)] };
}

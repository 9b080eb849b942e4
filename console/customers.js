// Customers, their keys, what they use and what they were denied; and addresses that need no key.
import { get, post, put, remove, tagOf } from "./api.js";
import { ago, amount, badge, copyable, enabledBadge, facts, fill, h, number, rateText, sportsText, time } from "./dom.js";
import { action, changes, conduct, confirm, editor, empty, follow, form, later, list, refusals, say, secretState, section, showOnce, table } from "./parts.js";
import { graph } from "./graph.js";
import { noteName } from "./names.js";

const FIELDS = [
    { name: "name", label: "Name", required: true },
    { name: "cidrs", label: "Networks", kind: "lines", hint: "Where its servers call from, one a line: 203.0.113.0/24. None: every request is denied." },
    { name: "sports", label: "Sports", kind: "sports" },
    { name: "rate", label: "Rate limit", kind: "rate", hint: "Requests in seconds, on sports routes; empty: no limit." },
    { name: "casino", label: "Casino", kind: "check", hint: "It may list and launch games, and move money." },
    { name: "sandbox", label: "Sandbox", kind: "check", hint: "It tries things out: its money counts nowhere. Only before its first launch." },
];

const customerLink = (customer) => h("a", { href: `#/customers/${customer.id}` }, customer.name);

export async function customersPage(page) {
    const add = page.may("operator") && h("a", { class: "button main", href: "#/customers/new" }, "Add a customer");
    return { title: "Customers", actions: add, content: list(page, {
        path: "customers", query: { q: page.query.q }, search: "Search by name or id", caption: "Customers",
        nothing: empty("There are no customers yet.", add && add.cloneNode(true)),
        columns: [
            { label: "Name", value: customerLink },
            { label: "State", value: (row) => [enabledBadge(row.enabled), row.sandbox && badge("warn", "sandbox")] },
            { label: "Sports", value: (row) => sportsText(row.sports) },
            { label: "Rate limit", value: (row) => rateText(row.rate) },
            { label: "Casino", value: (row) => (row.casino ? "yes" : "no") },
            { label: "Keys", number: true, value: (row) => number(row.keys) },
            { label: "Networks", value: (row) => (row.cidrs.length === 0 ? badge("warn", "none") : row.cidrs.join(" ")) },
            { label: "Added", when: (row) => row.created_at },
        ],
    }) };
}

export async function newCustomerPage(page) {
    return { title: "Add a customer", content: form({ fields: FIELDS, label: "Add", cancel: "/customers", submit: async (values) => {
        const customer = await post("customers", values);
        say(`${customer.name} is added. It needs a key to call.`);
        page.go(`/customers/${customer.id}`);
    } }) };
}

const WARNING = "Its requests are denied within a second.";
const policyFacts = (shown, fields) => fields.filter((field) => field.name !== "name").map((field) => [field.label, plainly(field, shown[field.name])]);

function plainly(field, value) {
    const kinds = { sports: sportsText, rate: rateText, check: (on) => (on ? "yes" : "no"),
        lines: (lines) => (lines.length === 0 ? badge("warn", "none") : lines.join(" ")) };
    return (kinds[field.kind] ?? String)(value);
}

const customerPath = (page) => [`customers/${encodeURIComponent(page.id)}`, `customers/${page.id}`];

export async function customerPage(page) {
    const [path, where] = customerPath(page);
    const customer = await get(path, {}, page.signal);
    const requests = graph(page, { title: "Requests a day", bars: true });
    const [state, buttons, policy] = [h("span"), h("span", { class: "actions" }), h("div")];
    const show = (now) => {
        fill(state, enabledBadge(now.enabled));
        fill(buttons, changes(page, { path, where, shown: now, name: now.name, warning: WARNING }));
        fill(policy, facts([...policyFacts(now, FIELDS), ["Live keys", number(now.keys)], ["Added", time(now.created_at)], ["Id", copyable(now.id, 24)],
            ["For its developers", h("a", { href: "/console/openapi.yaml", download: "openapi.yaml" }, "openapi.yaml")]]));
    };
    noteName(customer);
    show(customer);
    follow(page, path, { known: tagOf(customer), show, refused: () => {} });
    return { title: customer.name, state, actions: buttons, content: [
        h("div", { class: "pair" }, policy, requests.element),
        section("Keys", keys(page, customer)),
        h("div", { class: "columns" }, section("Players, the last active first", players(page, customer)),
            refusals(page, `${path}/denials`)),
        section("Money", usage(page, customer, requests)),
        section("Games", later(page, () => games(page, customer))),
        section("What this customer sees", sees(page, path)),
        customer.sandbox && conduct(page, path),
    ] };
}

export async function editCustomerPage(page) {
    const [path, where] = customerPath(page);
    const customer = await get(path, {}, page.signal);
    return editor(page, { path, where, shown: customer, name: customer.name, fields: FIELDS });
}

const PLAYERS = 8;

function players(page, customer) {
    return later(page, async () => {
        const { items, found } = await get("players", { customer: customer.id, limit: PLAYERS }, page.signal);
        return items.length === 0 ? empty("None yet. A player begins with a first launch.") : [table([
            { label: "Reference", value: (row) => h("a", { href: `#/players/${row.player_id}` }, row.player_reference) },
            { label: "State", value: (row) => (row.blocked_at ? badge("bad", "blocked") : "") },
            { label: "Balance", number: true, value: (row) => amount(row.balance_minor, row.currency_exponent, row.currency) },
            { label: "Last active", value: (row) => ago(row.last_active_at) },
        ], items, { caption: "Players of this customer" }), h("div", { class: "below" }, h("a", { href: `#/players?customer=${customer.id}` }, (found ?? Infinity) > items.length
            ? `All ${found === null ? "" : number(found)} players` : "In the list of players"))];
    });
}

// ---- keys ----

function keys(page, customer) {
    const shown = list(page, { path: "keys", query: { customer: customer.id }, caption: "Keys",
        nothing: empty("It has no key yet, so it cannot call."),
        columns: [
            { label: "Begins with", value: (key) => h("code", null, key.prefix) },
            { label: "State", value: secretState },
            { label: "Label", value: (key) => key.label },
            { label: "Areas", value: (key) => [...(key.only ?? ["sports", "casino"]), key.may_issue && `may issue ${key.may_issue.join(" and ")}`,
                key.made_by && "made by a key"].filter(Boolean).join(", ") },
            { label: "Issued", when: (key) => key.created_at },
            { label: "Expires", when: (key) => key.expires_at, never: "never" },
            { label: "Last used", when: (key) => key.last_used_at, never: "never" },
            { value: (key) => (page.may("operator") && !key.revoked_at ? action("Revoke", async () => {
                if (await confirm(`Revoke ${key.prefix}…?`, "Calls with it are denied within a second. It cannot be undone.", "Revoke")) {
                    await remove(`keys/${key.id}`);
                    say(`${key.prefix}… is revoked.`);
                    shown.reload({});
                }
            }, { class: "danger small" }) : "") },
        ] });
    return [shown, page.may("owner") && h("details", null, h("summary", null, "Issue a key"), form({ label: "Issue", legend: "Issue a key",
        fields: [
            { name: "label", label: "Label", placeholder: "production", hint: "For people: where it is kept." },
            { name: "expires_at", label: "Expires", placeholder: "90d", hint: "A number of days (90d) or a moment (2027-01-31); empty: never." },
            { name: "only", label: "Only for", kind: "choice", options: { "": "sports and casino", sports: "sports", casino: "casino",
                account: "account: reads what the customer has", "account,manage": "account and manage: also blocks players and makes keys" } },
            { name: "may_issue", label: "May issue", kind: "choice", hint: "Of a key with manage: what the keys that it makes may use.",
                options: { "": "nothing", "sports,casino": "sports and casino", sports: "sports", casino: "casino" } },
            { name: "cidrs", label: "Only from", kind: "lines", hint: "Networks within the customer's; none: all of them." },
        ],
        submit: async (values) => {
            const key = await post("keys", { customer: customer.id, ...values }).finally(() => { shown.reload({}); });
            showOnce(`The key ${key.prefix}… of ${customer.name}`, "It is shown this once and is kept nowhere. Hand it over, and close this.", key.key);
        } }))];
}

// ---- games and use ----

async function games(page, customer) {
    if (!customer.casino) {
        return empty("The casino is off for this customer.");
    }
    const path = `customers/${customer.id}/games`;
    const access = await get(path, {}, page.signal);
    const shown = access.every_game ? h("p", null, "Every game, also those that are added later.")
        : h("p", null, access.games.length === 1 ? "1 game: " : `${number(access.games.length)} games: `,
            access.games.map((id, at) => [at > 0 && ", ", h("a", { href: `#/casino/games/${id}` }, id)]));
    return [shown, page.may("operator") && h("details", null, h("summary", null, "Choose the games"), form({ label: "Save", legend: "Games",
        values: { every_game: access.every_game, games: access.games },
        fields: [
            { name: "every_game", label: "Every game", kind: "check", hint: "Also those that are added later." },
            { name: "games", label: "Or only these", kind: "lines", hint: "Ids of games, one a line." },
        ],
        submit: async (values) => {
            await put(path, values.every_game ? { every_game: true } : { games: values.games ?? access.games });
            say("Saved.");
            page.again();
        } }))];
}

const dayOf = (ago) => new Date(Date.now() - ago * 86400000).toISOString().slice(0, 10);

/* Draws the requests of 14 days, and leads to the money of the same days. */
function usage(page, customer, drawn) {
    const asked = { customer: customer.id, from: dayOf(13), to: dayOf(0) };
    return later(page, async () => {
        const used = await get("usage", { ...asked, wallet: "false" }, page.signal);
        const days = Array.from({ length: 14 }, (_, at) => dayOf(13 - at));
        const sums = (...classes) => days.map((day) => used.requests.filter((row) => row.day === day)
            .reduce((all, row) => all + classes.reduce((some, one) => some + row[one], 0), 0));
        drawn.show(days.map((day) => Date.parse(day) / 1000), [{ label: "answered", colour: 1, values: sums("2xx", "3xx") },
            { label: "refused", colour: 3, values: sums("4xx") }, { label: "failed", colour: 2, values: sums("5xx") }]);
        return h("a", { href: `#/money?${new URLSearchParams(asked)}` }, "Money of the last 14 days");
    });
}

const SEEN = { account: "rights and keys", transactions: "a transaction: id", players: "a player: reference or player_id", statement: "a statement: player_id",
    rounds: "rounds", days: "a day: day", entries: "entries", usage: "usage" };

/* The answers that its developers get. */
function sees(page, path) {
    const shown = h("div");
    return [h("p", { class: "quiet" }, "The answers of /api/v1/account, as a key of its own gets them. Nothing of its budget is taken."), form({ label: "Look", legend: "What it sees",
        fields: [
            { name: "what", label: "What", kind: "choice", options: SEEN },
            { name: "query", label: "Parameters", placeholder: "player_id=ply_…", hint: "As they stand behind the question mark." },
        ],
        submit: async ({ what, query }) => {
            fill(shown);
            const seen = await get(`${path}/account/${what}?${query ?? ""}`, {}, page.signal);
            fill(shown, h("pre", { tabindex: 0, role: "group", "aria-label": "The answer" }, JSON.stringify(seen, null, 2)));
        } }), shown];
}

// ---- addresses ----

const ADDRESS_FIELDS = FIELDS.filter((field) => field.name === "sports" || field.name === "rate");

export async function addressesPage(page) {
    const add = page.may("operator") && h("a", { class: "button main", href: "#/addresses/new" }, "Add an address");
    return { title: "Addresses", actions: add, content: [
        h("p", { class: "quiet" }, "Calls from these addresses need no key and get sports only."),
        list(page, { path: "addresses", query: { q: page.query.q }, search: "Search", caption: "Addresses",
            nothing: empty("No address is admitted without a key."),
            columns: [
                { label: "Address", value: (row) => h("a", { href: `#/addresses/${encodeURIComponent(row.address)}` }, row.address) },
                { label: "State", value: (row) => enabledBadge(row.enabled) },
                { label: "Sports", value: (row) => sportsText(row.sports) },
                { label: "Rate limit", value: (row) => rateText(row.rate) },
                { label: "Added", when: (row) => row.created_at },
            ] })] };
}

export async function newAddressPage(page) {
    return { title: "Add an address", content: form({ label: "Add", cancel: "/addresses", submit: async (values) => {
        const added = await post("addresses", values);
        say(`${added.address} is admitted.`);
        page.go("/addresses");
    }, fields: [{ name: "address", label: "Address", required: true, placeholder: "203.0.113.7" }, ...ADDRESS_FIELDS] }) };
}

const addressPath = (page) => [`addresses/${encodeURIComponent(page.id)}`, `addresses/${encodeURIComponent(page.id)}`];

export async function addressPage(page) {
    const [path, where] = addressPath(page);
    const shown = await get(path, {}, page.signal);
    return { title: shown.address, state: enabledBadge(shown.enabled), actions: [
        changes(page, { path, where, id: shown.address, shown, name: shown.address, warning: WARNING }),
        page.may("operator") && action("Remove", async () => {
            if (await confirm(`Remove ${shown.address}?`, "Without a key it is denied within a second.", "Remove")) {
                await remove(path);
                say(`${shown.address} is removed.`);
                page.go("/addresses");
            }
        }, { class: "danger" })],
    content: facts([...policyFacts(shown, ADDRESS_FIELDS), ["Added", time(shown.created_at)]]) };
}

export async function editAddressPage(page) {
    const [path, where] = addressPath(page);
    const shown = await get(path, {}, page.signal);
    return editor(page, { path, where, shown, name: shown.address, fields: ADDRESS_FIELDS });
}

// Who may sign in, with which role, and who is signed in now; and the tokens of machines.
import { patch, post, remove } from "./api.js";
import { badge, enabledBadge, h } from "./dom.js";
import { action, choice, confirm, empty, form, list, say, secretState, section, showOnce } from "./parts.js";

const ROLES = { reader: "reader: sees everything", operator: "operator: changes things", owner: "owner: operators and secrets as well" };

function showLink(page, made) {
    const link = new URL(made.link, location.origin).href;
    showOnce(`A link for ${made.name}`, "It signs in once, and only for a short time. It is shown this once.", link);
    page.listed.reload({});
}

function operatorActions(page, one) {
    const path = `operators/${encodeURIComponent(one.name)}`;
    const mine = one.name === page.me.name;
    const change = async (body) => {
        await patch(path, body);
        say(`${one.name} is changed.`);
        page.listed.reload({});
    };
    return h("span", { class: "controls" },
        action("New link", async () => showLink(page, { name: one.name, ...await post(`${path}/link`) }), { class: "small" }),
        !mine && choice("Role", Object.fromEntries(Object.keys(ROLES).map((role) => [role, role])), one.role, async (role) => {
            // A select changes at every arrow key: nobody becomes an owner by one.
            if (await confirm(`Give ${one.name} another role?`, ROLES[role], "Change the role")) {
                await change({ role }).catch((error) => say(error.message));
            } else {
                page.listed.reload({});
            }
        }),
        !mine && action(one.enabled ? "Disable" : "Enable", () => change({ enabled: !one.enabled }), { class: "small" }),
        !mine && action("Remove", async () => {
            if (await confirm(`Remove ${one.name}?`, "Their sessions end at once. Their rows in the audit stay.", "Remove")) {
                await remove(path);
                say(`${one.name} is removed.`);
                page.listed.reload({});
            }
        }, { class: "danger small" }));
}

function sessions(page) {
    const shown = list(page, { path: "sessions", caption: "Sessions", nothing: empty("Nobody is signed in."), columns: [
        { label: "Operator", value: (row) => row.operator },
        { label: "State", value: (row) => (row.ended_at ? badge("idle", "ended") : Date.parse(row.expires_at) < Date.now() ? badge("idle", "expired")
            : row.id === page.me.id ? badge("good", "this one") : badge("good", "live")) },
        { label: "From", value: (row) => h("code", null, row.address) },
        { label: "Signed in", when: (row) => row.created_at },
        { label: "Until", when: (row) => row.ended_at ?? row.expires_at },
        { value: (row) => (row.ended_at || row.id === page.me.id ? "" : action("End", async () => {
            await remove(`sessions/${row.id}`);
            say("The session is ended.");
            shown.reload({});
        }, { class: "danger small" })) },
    ] });
    return shown;
}

function tokens(page) {
    const shown = list(page, { path: "tokens", caption: "Tokens", nothing: empty("No machine has a token."), columns: [
        { label: "Name", value: (row) => row.name },
        { label: "State", value: secretState },
        { label: "Role", value: (row) => row.role },
        { label: "Only from", value: (row) => row.cidrs.join(" ") || "anywhere" },
        { label: "Made", when: (row) => row.created_at },
        { label: "Expires", when: (row) => row.expires_at, never: "never" },
        { label: "Last used", when: (row) => row.last_used_at, never: "never" },
        { value: (row) => (row.revoked_at ? "" : action("Revoke", async () => {
            if (await confirm(`Revoke the token ${row.name}?`, "Calls with it are refused within a second. It cannot be undone.", "Revoke")) {
                await remove(`tokens/${row.id}`);
                say(`The token ${row.name} is revoked.`);
                shown.reload({});
            }
        }, { class: "danger small" })) },
    ] });
    return [shown, h("details", null, h("summary", null, "Make a token"), form({ label: "Make", legend: "Make a token",
        fields: [{ name: "name", label: "Name of the token", required: true, placeholder: "terraform", hint: "As it stands in the audit." },
            { name: "role", label: "Role of the token", kind: "choice", options: ROLES },
            { name: "expires_at", label: "Expires", placeholder: "90d", hint: "A number of days (90d) or a moment (2027-01-31); empty: never." },
            { name: "cidrs", label: "Only from", kind: "lines", hint: "Networks, one a line: 203.0.113.0/24. None: from anywhere." }],
        submit: async (values) => {
            const made = await post("tokens", values);
            showOnce(`The token ${made.name}`, "It is shown this once and is kept nowhere. Give it to the machine, and close this.", made.token);
            shown.reload({});
        } }))];
}

export async function operatorsPage(page) {
    if (!page.may("owner")) {
        return { title: "Operators", content: empty("Only owners manage operators.", h("a", { href: "#/" }, "To the start")) };
    }
    page.listed = list(page, { path: "operators", caption: "Operators", columns: [
        { label: "Name", value: (one) => one.name },
        { label: "State", value: (one) => enabledBadge(one.enabled) },
        { label: "Role", value: (one) => one.role },
        { label: "Added", when: (one) => one.created_at },
        { value: (one) => operatorActions(page, one) },
    ] });
    return { title: "Operators", content: [page.listed,
        h("details", null, h("summary", null, "Add an operator"), form({ label: "Add", legend: "Add an operator",
            fields: [{ name: "name", label: "Name", required: true, hint: "As it stands in the audit." },
                { name: "role", label: "Role", kind: "choice", options: ROLES }],
            submit: async (values) => showLink(page, await post("operators", values)) })),
        section("Sessions", sessions(page)), section("Tokens", tokens(page))] };
}

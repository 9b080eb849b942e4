// Providers and their games: what there is, and what is enabled.
import { api, get, post, remove } from "./api.js";
import { ago, badge, copyable, enabledBadge, facts, fill, h, newId, number, time } from "./dom.js";
import { action, changes, choice, conduct, confirm, editor, empty, form, list, problem, say, section, showOnce, table } from "./parts.js";

const gameLink = (id, name) => h("a", { href: `#/casino/games/${id}` }, name ?? id);

export async function casinoPage(page) {
    const providers = (await get("providers", { limit: 200 }, page.signal)).items;
    const names = { "": "every provider", ...Object.fromEntries(providers.map((one) => [one.id, one.name])) };
    const chosen = choice("Of", names, page.query.provider, (provider) => games.reload({ provider }));
    const add = page.may("owner") && h("a", { class: "button", href: "#/casino/providers/new" }, "Add a provider");
    const load = page.may("operator") && h("a", { class: "button main", href: "#/casino/import" }, "Import games");
    const games = list(page, { path: "games", query: { q: page.query.q, provider: page.query.provider }, search: "Search games by name or id",
        caption: "Games", extra: chosen,
        nothing: empty("There are no games here.", load && load.cloneNode(true)),
        columns: [
            { label: "Game", value: (game) => gameLink(game.id, game.name) },
            { label: "State", value: (game) => enabledBadge(game.enabled) },
            { label: "Provider", value: (game) => names[game.provider] ?? game.provider },
            { label: "Category", value: (game) => game.category },
            { label: "Return", number: true, value: (game) => (game.rtp_bps === null ? "–" : `${(game.rtp_bps / 100).toFixed(2)} %`) },
            { label: "Currencies", value: (game) => game.currencies.join(" ") },
            { label: "Changed", value: (game) => ago(game.updated_at) },
        ] });
    return { title: "Casino", actions: [add, load], content: [
        section("Providers", providers.length === 0
            ? empty("There is no provider yet. An owner adds one, here or with croupier provider add.")
            : table([
                { label: "Provider", value: (one) => h("a", { href: `#/casino/providers/${one.id}` }, one.name) },
                { label: "State", value: (one) => [enabledBadge(one.enabled), one.sandbox && badge("warn", "sandbox")] },
                { label: "Launches by", value: (one) => one.launch_endpoint ? "its endpoint" : "a signed address" },
                { label: "Secrets", number: true, value: (one) => number(one.secrets.length) },
                { label: "May call from", value: (one) => one.cidrs.join(" ") || "anywhere" },
            ], providers, { caption: "Providers" })),
        section("Games", games)] };
}

// ---- a provider ----

const COUNTRIES = { name: "blocked_countries", label: "Not offered in", kind: "lines",
    hint: "Countries by their ISO 3166-1 codes (GB, not UK). Launches from there are refused, and each for money must say its country. None: everywhere." };
const blockedText = (one) => one.blocked_countries.join(" ") || "– (everywhere)";

const SANDBOX = { name: "sandbox", label: "Sandbox", kind: "check", hint: "It tries things out, with sandbox customers alone. Only before its first launch." };

const PROVIDER_FIELDS = [
    { name: "name", label: "Name", required: true },
    { name: "return_url", label: "Return address", placeholder: "https://…", hint: "Where a player is led after a game." },
    { name: "audience", label: "Audience", hint: "Whom a token is for (aud)." },
    { name: "cidrs", label: "May call from", kind: "lines", hint: "Networks of its wallet calls, one a line; none: any." },
    COUNTRIES,
    SANDBOX,
];

const NEW_FIELDS = [
    { name: "id", label: "Id", required: true, hint: "1 to 64 of a-z, 0-9 and -. It stays." },
    { name: "name", label: "Name", required: true },
    { name: "launch_url", label: "Launch address", required: "this or the endpoint", placeholder: "https://…", hint: "A launch is this, with a signed token." },
    { name: "launch_endpoint", label: "Launch endpoint", required: "this or the address", placeholder: "https://…", hint: "It is called for the address of each launch." },
    { name: "return_url", label: "Return address", placeholder: "https://…", hint: "Where a player is led after a game." },
    { name: "secret", label: "Secret", hint: "Signs launches. Give the one that the provider chose; otherwise one is made and shown once." },
];

/** A secret that was made: who has the provider gets it now. */
const showSecret = (made) => made.secret && showOnce(`The secret of ${made.name}`, "It signs what is sent to the provider, and what it sends. It is shown this once.", made.secret);

export async function newProviderPage(page) {
    return { title: "Add a provider", content: page.may("owner") ? form({ fields: NEW_FIELDS, label: "Add", cancel: "/casino", submit: async (values) => {
        const made = await post("providers", values);
        addEventListener("hashchange", () => showSecret(made), { once: true });
        page.go(`/casino/providers/${made.id}`);
    } }) : empty("Only owners add providers, as a secret comes with one.", h("a", { href: "#/casino" }, "To the casino")) };
}

function secrets(page, path, provider) {
    const owner = page.may("owner");
    const columns = [
        { label: "Id", value: (secret) => h("code", null, String(secret.kid)) },
        { label: "State", value: (secret) => (secret.signs ? badge("good", "signs") : badge("idle", "verifies")) },
        { label: "Added", when: (secret) => secret.added_at },
        owner && provider.secrets.length > 1 && { value: (secret) => action("Retire", async () => {
            if (await confirm(`Retire ${secret.kid}?`, "Calls and tokens signed with it are refused from now on.", "Retire")) {
                await remove(`${path}/secrets/${encodeURIComponent(secret.kid)}`);
                say(`${secret.kid} is retired.`);
                page.again();
            }
        }, { class: "danger" }) },
    ].filter(Boolean);
    return section("Secrets", table(columns, provider.secrets, { caption: "Secrets" }),
        owner && provider.secrets.length < 2 && h("p", { class: "controls" }, action("Add a secret", async () => {
            const made = await post(`${path}/secrets`, {});
            page.again();
            showSecret({ ...made, name: provider.name });
        })), h("p", { class: "quiet" }, owner ? "A new one signs at once; the one before is believed until it is retired."
            : "Owners replace them."));
}

function trial(page, path, called) {
    const id = newId();
    const game = h("input", { id, type: "text", placeholder: "the first one", autocomplete: "off", spellcheck: "false" });
    const result = h("div", { "aria-live": "polite" });
    const run = action("Launch", async () => {
        fill(result);
        const tried = await post(`${path}/try`, game.value.trim() ? { game: game.value.trim() } : {});
        const good = tried.outcome === "launched";
        fill(result, h("p", null, badge(good ? "good" : "bad", good && !called ? "made" : tried.outcome)), facts([["Game", tried.game_id],
            called && ["Called", tried.launch_endpoint], called && ["Status", tried.status], called && ["Took", `${number(tried.milliseconds)} ms`],
            tried.reason && ["Reason", tried.reason],
            tried.launch_url && ["Leads to", h("a", { href: tried.launch_url, target: "_blank", rel: "noreferrer" }, "the game, in demo mode")],
            tried.expires_at && ["Good until", time(tried.expires_at)]].filter(Boolean)));
    }, { class: "main" });
    return section("Try it", h("p", { class: "quiet" }, called ? "Calls the launch endpoint in demo mode, without a player, and shows the answer."
        : "Makes the URL of a demo launch without a player. The provider is not called; open the URL to try it."),
    h("div", { class: "controls" }, h("label", { for: id, class: "inline" }, "Game ", game), run), result);
}

const launchField = (provider) => (provider.launch_endpoint
    ? { name: "launch_endpoint", label: "Launch endpoint", hint: "It is called for each launch." }
    : { name: "launch_url", label: "Launch address", hint: "A launch is this, with a signed token." });

export async function providerPage(page) {
    const path = `providers/${encodeURIComponent(page.id)}`;
    const provider = await get(path, {}, page.signal);
    return { title: provider.name, state: enabledBadge(provider.enabled),
        actions: changes(page, { path, where: `casino/${path}`, shown: provider, name: provider.name,
            warning: "Its games are hidden and its calls are refused, wins and rollbacks too, until it is enabled again. To stop only new stakes, disable its games." }),
        content: [facts([...[launchField(provider), ...PROVIDER_FIELDS.slice(1)].map(({ name, label }) =>
            [label, name === COUNTRIES.name ? blockedText(provider) : Array.isArray(provider[name]) ? provider[name].join(" ") || "anywhere" : provider[name]]),
        ["Added", time(provider.created_at)], ["Id", copyable(provider.id)],
        ["Games", h("a", { href: `#/casino?provider=${provider.id}` }, "of this provider")],
        ["Rounds", h("a", { href: `#/rounds?provider=${provider.id}` }, "that stay open")]]),
        page.may("owner") && trial(page, path, provider.launch_endpoint !== null),
        secrets(page, path, provider),
        provider.sandbox && conduct(page, path)] };
}

export async function editProviderPage(page) {
    const path = `providers/${encodeURIComponent(page.id)}`;
    const provider = await get(path, {}, page.signal);
    return editor(page, { path, where: `casino/${path}`, shown: provider, name: provider.name,
        fields: page.may("owner") ? [...PROVIDER_FIELDS, launchField(provider)] : PROVIDER_FIELDS });
}

// ---- a game ----

export async function gamePage(page) {
    const path = `games/${encodeURIComponent(page.id)}`;
    const game = await get(path, {}, page.signal);
    return { title: game.name, state: enabledBadge(game.enabled),
        actions: changes(page, { path, where: `casino/${path}`, shown: game, name: game.name, warning: "It is hidden and its stakes are refused. Wins and rollbacks still pass." }),
        content: [facts([["Provider", h("a", { href: `#/casino/providers/${game.provider}` }, game.provider)],
            ["Category", game.category], ["Features", game.features.join(", ") || "none"],
            ["Return", game.rtp_bps === null ? "–" : `${(game.rtp_bps / 100).toFixed(2)} %`], ["Volatility", game.volatility],
            ["Demo", game.demo ? "yes" : "no"], ["Currencies", game.currencies.join(" ")], ["Languages", game.languages.join(" ")],
            ["Devices", game.devices.join(" ")], [COUNTRIES.label, blockedText(game)], ["Changed", time(game.updated_at)], ["Id", copyable(game.id, 24)]]),
        h("p", { class: "quiet" }, "An import sets the facts of a game, and keeps its countries where it does not name them. Each customer's page sets whether the customer may use it."),
        ] };
}

export async function editGamePage(page) {
    const path = `games/${encodeURIComponent(page.id)}`;
    const game = await get(path, {}, page.signal);
    return editor(page, { path, where: `casino/${path}`, shown: game, name: game.name, fields: [COUNTRIES] });
}

// ---- import ----

/* What is wrong with JSON has a place: the line is shown, so that it is found. */
function lineOf(error, text) {
    const line = error.line ?? (/line (\d+)/.exec(error.message) ?? [])[1];
    const shown = line && text.split("\n")[line - 1];
    return shown === undefined || shown === "" || !line ? null : h("pre", null, `${line}: ${shown.slice(0, 400)}`);
}

export async function importPage(page) {
    const id = newId();
    const text = h("textarea", { id, rows: 14, spellcheck: "false", placeholder: "[ { \"id\": \"my-game\", \"name\": … } ]" });
    const file = h("input", { type: "file", accept: ".json,application/json", "aria-label": "A file of games", onchange: async () => {
        if (file.files.length > 0) {
            text.value = await file.files[0].text();
        }
    } });
    const result = h("div", { "aria-live": "polite" });
    const run = async (event) => {
        event.preventDefault();
        fill(result, h("p", { class: "quiet" }, "Importing…"));
        try {
            const { data } = await api("POST", "games/import", { text: text.value });
            fill(result, h("p", { class: "notice good" }, `${number(data.added)} added, ${number(data.changed)} changed, ${number(data.unchanged)} as they were. `,
                h("a", { href: "#/casino" }, "To the games")));
        } catch (error) {
            fill(result, problem(error), lineOf(error, text.value));
            text.setAttribute("aria-invalid", "true");
            text.focus();
        }
    };
    return { title: "Import games", content: page.may("operator") ? h("form", { novalidate: true, onsubmit: run },
        h("p", { class: "quiet" }, "A JSON array of games, as croupier game import takes it. All of them are taken, or none."),
        h("div", { class: "field" }, h("span", { class: "name" }, "From a file"), h("div", null, file)),
        h("div", { class: "field" }, h("label", { for: id, class: "name" }, "Or written here"), h("div", null, text)),
        h("div", { class: "buttons" }, h("button", { class: "main" }, "Import")), result)
        : empty("Readers cannot import games.", h("a", { href: "#/casino" }, "To the casino")) };
}

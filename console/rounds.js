// Rounds: what players staked and won under one round of a provider, and those that stay open.
import { amount, badge, copyable, h, number } from "./dom.js";
import { choice, day, empty, list, pick, searchField } from "./parts.js";
import { customerLink } from "./names.js";

const STATES = { open: ["warn", "open"], ended: ["good", "ended"], settled: ["good", "settled"] };
const SHOWN = { open: "open", ended: "ended", settled: "settled", all: "all" };
const AGES = { "": "any age", "1h": "older than an hour", "24h": "older than a day", "7d": "older than a week" };

/* What a provider did otherwise than once. */
function remarks(round) {
    return [round.ends > 1 && `ended ${number(round.ends)} times`, round.bet_after_end && "a bet after the end"].filter(Boolean).join(", ");
}

const COLUMNS = [
    { label: "Began", when: (round) => round.began_at },
    { label: "State", value: (round) => [badge(...STATES[round.state]), round.sandbox && badge("warn", "sandbox")] },
    { label: "Stake", number: true, value: (round) => amount(round.stake_minor, round.currency_exponent, round.currency) },
    { label: "Won", number: true, value: (round) => amount(round.win_minor, round.currency_exponent, round.currency) },
    { label: "Player", value: (round) => h("a", { href: `#/players/${round.player_id}` }, round.player_reference) },
    { label: "Customer", value: (round) => customerLink(round.customer) },
    { label: "Provider", value: (round) => (round.provider ? h("a", { href: `#/casino/providers/${round.provider}` }, round.provider) : "") },
    { label: "Game", value: (round) => (round.game_id ? h("a", { href: `#/casino/games/${encodeURIComponent(round.game_id)}` }, round.game_id) : "") },
    { label: "Round", value: (round) => copyable(round.round_id, 24) },
    { label: "Remarks", value: remarks },
];

export async function roundsPage(page) {
    const { provider, customer, player, q, state = "open", older_than: age, from, to } = page.query;
    const change = (name) => (chosen) => shown.reload({ [name]: chosen });
    const picked = await Promise.all([pick(page, "Customer", "customers", customer, change("customer")), pick(page, "Provider", "providers", provider, change("provider"))]);
    const shown = list(page, { path: "rounds", query: { q, player, provider, customer, state, older_than: age, from, to }, caption: "Rounds, the newest first",
        columns: COLUMNS, search: "A part of the round's id",
        extra: [searchField("Player's id", player, change("player")), choice("State", SHOWN, state, change("state")), choice("of", AGES, age, change("older_than")),
            picked, day("From", from, change("from")), day("To", to, change("to"))],
        nothing: empty("No round of these days is like that.") });
    return { title: "Rounds", content: [h("p", { class: "quiet" }, "A round is open while a bet of it is neither rolled back nor settled, and its provider has not said ",
        "that it ended. Providers settle rounds: ask them about old ones. Without a day, rounds of the last 30 days are shown."), shown] };
}

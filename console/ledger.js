// The ledger: what it does now, and whether it is whole.
import { post } from "./api.js";
import { badge, duration, facts, fill, h, number, time } from "./dom.js";
import { action, empty, follow, problem, section, table } from "./parts.js";

const STATES = { running: ["warn", "running"], sound: ["good", "sound"], broken: ["bad", "broken"], failed: ["bad", "did not finish"] };

const FIGURES = [["operations_in_all", "Operations"], ["batches", "Batches"], ["commits", "Commits"],
    ["commit_microseconds", "A commit takes on average (ms)", 1000], ["operations_in_batches", "Operations in batches"], ["waiting", "Waiting now"],
    ["begun_again", "Batches begun again"], ["opened_again", "Store opened again"]];

function tiles(ledger) {
    return h("div", { class: "tiles" }, FIGURES.map(([name, label, divisor]) =>
        h("div", { class: "tile" }, h("b", null, number(divisor ? ledger[name] / divisor : ledger[name])), h("span", null, label))));
}

const took = (of) => duration((Date.parse(of.ended_at) - Date.parse(of.started_at)) / 1000);

const BROKEN = "Rows are not what croupier wrote. Do not repair them by hand: keep a copy of the store as it is, block the player that is "
    + "named, and compare with a backup from before (docs/alarms.md, CroupierLedgerBroken).";

/* How the run that was begun here came out, as the command says it. */
const outcomeOf = (run) => (run.state === "none" ? null : [badge(...STATES[run.state]), run.message && ` ${run.message}`]);

/* How far it is, or what it found. */
function detailsOf(run) {
    const share = run.total > 0 ? Math.min(1, run.done / run.total) : 0;
    return run.state === "none" ? null : [
        run.state === "broken" && h("p", { class: "notice bad" }, BROKEN),
        run.state === "running" && h("p", null, h("progress", { max: 1, value: share, "aria-label": "Verified" }),
            ` ${number(run.done)}${run.total > 0 ? ` of ${number(run.total)} entries` : ": the store is looked at"}`),
        facts([["Begun", time(run.started_at)], ["By", run.by], run.ended_at && ["Took", took(run)],
            run.state === "sound" && ["Proved", `${number(run.entries)} entries of ${number(run.players)} players; the store itself by ${run.how}`],
            run.player_id && ["First break", h("a", { href: `#/players/${run.player_id}` },
                `${run.player_id}, ${run.sequence ? `entry ${run.sequence}` : `decline ${run.decline}`}`)]].filter(Boolean))];
}

function lastOf(verified) {
    const rows = [["all of it", verified.whole], ["what came since", verified.recent]].filter(([, one]) => one !== null);
    return rows.length === 0 ? empty("It was never verified.") : table([
        { label: "Scope", value: ([what, one]) => [what, " ", one.since && time(one.since)] },
        { label: "Outcome", value: ([, one]) => (one.sound ? badge("good", "sound") : [badge("bad", "broken"), " ", one.reason]) },
        { label: "Ended", when: ([, one]) => one.ended_at },
        { label: "Took", number: true, value: ([, one]) => took(one) },
        { label: "Entries", number: true, value: ([, one]) => number(one.entries) },
        { label: "Players", number: true, value: ([, one]) => number(one.players) },
    ], rows, { caption: "The last verifications" });
}

export async function ledgerPage(page) {
    const figures = h("div");
    const outcome = h("p", { "aria-live": "polite" });
    const details = h("div");
    const last = h("div");

    const verify = action("Verify now", async () => {
        await post("ledger/verification");
        again();
    }, { class: "main" });
    const again = follow(page, "ledger", {
        show(ledger) {
            fill(figures, tiles(ledger));
            const news = `${ledger.run.state} ${ledger.run.message}`;
            if (outcome.dataset.news !== news) { // what is filled is read aloud
                outcome.dataset.news = news;
                fill(outcome, outcomeOf(ledger.run));
            }
            fill(details, detailsOf(ledger.run));
            fill(last, lastOf(ledger.verified));
            verify.hidden = ledger.run.state === "running" || !page.may("operator");
        },
        refused: (error) => fill(details, problem(error)),
    });
    return { title: "Ledger", content: [h("p", { class: "quiet" }, "This instance, since its start:"), figures, section("Verification",
        h("p", { class: "quiet" }, "Every balance, sequence and hash is derived again from the entries, as croupier wallet verify does. Play continues during it."),
        outcome, details, verify), section("Last verified", last)] };
}

// What is published: sports, their events, and one event as it moves.
import { api, get } from "./api.js";
import { ago, append, badge, copyable, facts, fill, h, number, sportName, time } from "./dom.js";
import { choice, empty, follow, list, problem, scroller, searchField, section, table } from "./parts.js";

const EXPIRED_SHOWN_MS = 15 * 60 * 1000;

const sportState = (row) => (row.problem ? badge("bad", row.problem)
    : row.expired_at && Date.now() - Date.parse(row.expired_at) < EXPIRED_SHOWN_MS
        ? badge("warn", [`${number(row.expired)} expired, the last `, ago(row.expired_at)])
    : row.stale > 0 ? badge("warn", `${number(row.stale)} with old odds`) : badge("good", "served"));

export async function feedPage(page) {
    const place = h("div");
    const show = ({ items }) => fill(place,
        items.every((row) => row.published_at === null && row.events === 0)
            && empty("Nothing is published. A feed publishes with croupier feed stream, or croupier feed catalog."),
        table([
            { label: "Sport", value: (row) => h("a", { href: `#/feed/${row.sport}` }, row.name) },
            { label: "State", value: sportState },
            { label: "Events", number: true, value: (row) => number(row.events) },
            { label: "Catalog published", when: (row) => row.published_at },
            { label: "Asked for in the last minute", number: true, value: (row) => number(row.asked_for) },
            { label: "Oldest odds of these", value: (row) => (row.oldest_odds_at ? ago(row.oldest_odds_at) : "–") },
        ], items, { caption: "Sports" }));
    follow(page, "feed", { show, refused: (error) => fill(place, problem(error)) });
    return { title: "Feed", content: place };
}

export async function sportPage(page) {
    const events = list(page, { path: `feed/${encodeURIComponent(page.sport)}`, query: { q: page.query.q, order: page.query.order },
        search: "Search events by name or id", caption: `Events of ${sportName(page.sport)}`,
        nothing: empty("No event of this sport is published.", h("a", { href: "#/feed" }, "To the feed")),
        columns: [
            { label: "Event", value: (row) => h("a", { href: `#/feed/${page.sport}/${row.event_id}` }, row.name ?? row.event_id) },
            { label: "Id", value: (row) => copyable(row.event_id) },
            { label: "Odds", order: "age", value: (row) => (row.odds === false ? badge("warn", "none") : row.published_at ? ago(row.published_at) : "published") },
            { label: "Asked for", order: "interest", direction: "descending", value: (row) => ago(row.requested_at) },
        ] });
    page.every(5, async () => events.refresh());
    return { title: sportName(page.sport), content: events };
}

// ---- one event ----

/* A cell that moves: how it differs from what was there before is seen for a moment, and heard by nobody. */
function price(entry, key, before, seen, side) {
    if (!(Number(entry?.price) > 0)) { // of a side that offers nothing: 0, "-", or no entry
        return h("td", { class: `number quiet ${side}` }, "–");
    }
    const text = String(entry.price);
    const was = before.get(key);
    seen.set(key, text);
    const moved = was !== undefined && was !== text ? (Number(text) > Number(was) ? " up" : " down") : "";
    return h("td", { class: `number ${side}${moved}` }, h("b", null, text), " ", h("small", null, entry.size === undefined ? "" : number(Number(entry.size))));
}

/* Numbers keep the text that the feed wrote: 1.80 is not 1.8. Browsers that do not know the source of a number round. */
const exactly = (text) => JSON.parse(text, (_, value, context) => (typeof value === "number" ? context?.source ?? value : value));

const best = (side, level) => (level === 0 ? side : "");

/* Prices and stakes by selection, to a depth on either side, the best nearest the middle. `heads`: over the best. */
function ladder(market, runners, depth, heads, at, before, seen) {
    const levels = Array.from({ length: depth }, (_, level) => level);
    const back = (runner, level) => price(runner.ex?.availableToBack?.[level], `${at}/${runner.selectionId}/b${level}`, before, seen, best("back", level));
    const lay = (runner, level) => price(runner.ex?.availableToLay?.[level], `${at}/${runner.selectionId}/l${level}`, before, seen, best("lay", level));
    return scroller(market.marketName, h("table", { class: "ladder" },
        h("caption", { class: "unseen" }, `${market.marketName}: prices and stakes, the best nearest the middle`),
        h("thead", null, h("tr", null, h("th", { scope: "col" }, "Selection"), [...levels].reverse().map((level) =>
            h("th", { scope: "col", class: "number" }, level === 0 ? heads[0] : `Back ${level + 1}`)),
        levels.map((level) => h("th", { scope: "col", class: "number" }, level === 0 ? heads[1] : `Lay ${level + 1}`)),
        h("th", { scope: "col" }, "Status"))),
        h("tbody", null, runners.map((runner) => h("tr", null, h("th", { scope: "row" }, runner.runnerName ?? String(runner.selectionId)),
            [...levels].reverse().map((level) => back(runner, level)), levels.map((level) => lay(runner, level)),
            h("td", null, runner.status || "–"))))));
}

const DEPTH = 3;

/* A fancy market's entries ("runs in 6 overs") are quoted as selections are. Of the type fancy, `odds` is the line and `size` its price;
   of the others these are what the feed makes of them. */
function sectionLadder(market, at, before, seen) {
    const side = (row, name) => (Array.isArray(row.odds) ? row.odds : []).filter((one) => String(one.otype).toLowerCase() === name)
        .map((one) => ({ price: one.odds, size: one.size }));
    const runners = market.section.map((row) => ({ selectionId: row.sid, runnerName: row.nat, status: row.gstatus,
        ex: { availableToBack: side(row, "back"), availableToLay: side(row, "lay") } }));
    const head = (name) => [name, " ", h("small", null, market.gtype === "fancy" ? "line, price" : "odds, size")];
    return ladder(market, runners, 1, [head("Yes"), head("No")], at, before, seen);
}

function marketBlock(market, at, before, seen) {
    const shown = Array.isArray(market.runners) ? ladder(market, market.runners, DEPTH, ["Back", "Lay"], at, before, seen)
        : Array.isArray(market.section) && market.section.length > 0 ? sectionLadder(market, at, before, seen)
            : h("p", { class: "quiet" }, "This page does not know this kind of market; its bytes are below.");
    return h("section", { class: "market" }, h("h3", null, market.marketName ?? market.marketId ?? "Market", " ",
        h("small", null, market.gtype ?? ""), " ", badge(market.status === "OPEN" ? "good" : "idle", market.status ?? "no status")), shown);
}

const ANYBODY = { "": "anybody who may have the sport" };

/* Of more customers than are listed at once, a search says which are offered. */
async function customerChoice(page, chosen, changed) {
    const place = h("div", { class: "controls" });
    const offer = async (q) => {
        const { items, next } = await get("customers", { q, limit: 200 }, page.signal);
        const names = { ...ANYBODY, ...Object.fromEntries(items.map((one) => [one.id, one.name])) };
        names[chosen] ??= (await get(`customers/${encodeURIComponent(chosen)}`, {}, page.signal).catch(() => null))?.name ?? chosen;
        const select = choice("Customer", names, chosen, (id) => changed(chosen = id));
        if (place.lastElementChild === null) {
            append(place, [next !== null && searchField("Search customers", "", offer), select]);
        } else {
            place.lastElementChild.replaceWith(select);
        }
    };
    await offer("");
    return place;
}

export async function eventPage(page) {
    const path = `feed/${encodeURIComponent(page.sport)}/${encodeURIComponent(page.event)}`;
    const markets = h("div");
    const bytes = h("pre", { tabindex: 0, "aria-label": "The answer's bytes" });
    const count = h("p", { class: "quiet" });
    const top = h("div");
    let customer = page.query.customer ?? "";
    let before = new Map();
    let changes = -1;

    function showMarkets(body) {
        const seen = new Map();
        const { event, odds } = exactly(body);
        fill(markets, odds.length === 0 ? empty("The event has no markets.")
            : odds.map((market, at) => marketBlock(market, at, before, seen)));
        before = seen;
        return [["Status", event.status], ["Markets", number(odds.length)]];
    }

    function show(answer) {
        const named = answer.status === 200 ? showMarkets(answer.body)
            : (fill(markets, empty("There is nothing to show, as the answer below says.")), []);
        changes += 1;
        fill(top, facts([["Sport", h("a", { href: `#/feed/${page.sport}` }, sportName(page.sport))], ["Event", h("code", null, page.event)], ...named,
            ["Odds published", time(answer.published_at)], ["Changes seen here", number(changes)]]));
        bytes.textContent = answer.body;
        fill(count, badge(answer.status === 200 ? "good" : "warn", String(answer.status)),
            ` ${number(new TextEncoder().encode(answer.body).length)} bytes, entity tag `, h("code", null, answer.etag ?? "–"));
    }

    const { data: first, tag } = await api("GET", path, { query: { customer }, signal: page.signal });
    show(first);
    const again = follow(page, path, { query: () => ({ customer }), known: tag, show, refused: (error) => fill(top, problem(error)) });
    const customers = await customerChoice(page, customer, (chosen) => {
        customer = chosen;
        changes = -1;
        page.remember({ customer });
        again();
    });
    const name = first.status === 200 ? exactly(first.body).event.ename : null;
    return { title: String(name ?? `Event ${page.event}`), content: [top, section("Markets", markets),
        section("A customer's answer, byte for byte", customers, h("p", { class: "quiet" }, h("code", null, `GET /api/v1/${page.sport}/events/${page.event}`), " answers with just this:"), count, bytes),
    ] };
}

// The frame around every page, who is signed in, and which page an address means.
import { get, onSignedOut, remove, silence } from "./api.js";
import { append, duration, fill, h } from "./dom.js";
import { problem, say, waiting, openDialog } from "./parts.js";
import { auditPage, healthPage, settingsPage } from "./house.js";
import { casinoPage, editGamePage, editProviderPage, gamePage, importPage, newProviderPage, providerPage } from "./casino.js";
import { eventPage, feedPage, sportPage } from "./feed.js";
import { addressPage, addressesPage, customerPage, customersPage, editAddressPage, editCustomerPage, newAddressPage, newCustomerPage } from "./customers.js";
import { ledgerPage } from "./ledger.js";
import { entriesPage, moneyPage } from "./money.js";
import { operatorsPage } from "./operators.js";
import { overviewPage } from "./overview.js";
import { playerPage, playersPage } from "./players.js";
import { roundsPage } from "./rounds.js";
import { signInPage } from "./sign_in.js";

/* The address after "#", its page, and the entry of the menu that it belongs to. */
const ROUTES = [
    ["/", overviewPage, "/"],
    ["/customers", customersPage, "/customers"],
    ["/customers/new", newCustomerPage, "/customers"],
    ["/customers/:id", customerPage, "/customers"],
    ["/customers/:id/edit", editCustomerPage, "/customers"],
    ["/addresses", addressesPage, "/addresses"],
    ["/addresses/new", newAddressPage, "/addresses"],
    ["/addresses/:id", addressPage, "/addresses"],
    ["/addresses/:id/edit", editAddressPage, "/addresses"],
    ["/feed", feedPage, "/feed"],
    ["/feed/:sport", sportPage, "/feed"],
    ["/feed/:sport/:event", eventPage, "/feed"],
    ["/casino", casinoPage, "/casino"],
    ["/casino/import", importPage, "/casino"],
    ["/casino/games/:id", gamePage, "/casino"],
    ["/casino/games/:id/edit", editGamePage, "/casino"],
    ["/casino/providers/new", newProviderPage, "/casino"],
    ["/casino/providers/:id", providerPage, "/casino"],
    ["/casino/providers/:id/edit", editProviderPage, "/casino"],
    ["/money", moneyPage, "/money"],
    ["/money/entries", entriesPage, "/money"],
    ["/players", playersPage, "/players"],
    ["/players/:id", playerPage, "/players"],
    ["/rounds", roundsPage, "/rounds"],
    ["/ledger", ledgerPage, "/ledger"],
    ["/audit", auditPage, "/audit"],
    ["/health", healthPage, "/health"],
    ["/settings", settingsPage, "/settings"],
    ["/operators", operatorsPage, "/operators"],
];

/* In groups. The letter goes there after "g". `least`: the role that sees it. */
const GROUPS = [
    ["", [["/", "Overview", "o"]]],
    ["Trade", [["/customers", "Customers", "c"], ["/feed", "Feed", "f"], ["/casino", "Casino", "s"], ["/addresses", "Addresses", "i"]]],
    ["Money", [["/money", "Money", "m"], ["/players", "Players", "p"], ["/rounds", "Rounds", "r"], ["/ledger", "Ledger", "l"]]],
    ["System", [["/health", "Health", "h"], ["/audit", "Audit", "a"], ["/settings", "Settings", "e"], ["/operators", "Operators", "u", "owner"]]],
];
const MENU = GROUPS.flatMap(([, entries]) => entries);

const ROLES = ["reader", "operator", "owner"];
const HEALTH_SECONDS = 5;
const LAST_SECONDS = 600; // of a session, of which the page warns

let me = null;
let lifetime = null; // of the page that is shown
let frame = null;

/** A part of an address as it was meant; null: it is not properly encoded. */
function decoded(part) {
    try {
        return decodeURIComponent(part);
    } catch {
        return null;
    }
}

/** The route of an address, or null. */
function match(path) {
    const parts = path.split("/");
    for (const [pattern, show, entry] of ROUTES) {
        const wanted = pattern.split("/");
        const fits = wanted.length === parts.length && wanted.every((part, at) => part.startsWith(":") || part === parts[at]);
        if (fits) {
            const found = wanted.flatMap((part, at) => (part.startsWith(":") ? [[part.slice(1), decoded(parts[at])]] : []));
            return found.some(([, value]) => value === null) ? null : { show, entry, params: Object.fromEntries(found) };
        }
    }
    return null;
}

function address() {
    const [path, query] = (location.hash.slice(1) || "/").split("?");
    return { path, query: Object.fromEntries(new URLSearchParams(query ?? "")) };
}

// ---- the frame ----

function menuEntry([path, label, letter]) {
    return h("a", { href: `#${path}`, "data-path": path, title: `g ${letter}` }, label);
}

const may = (role) => ROLES.indexOf(me?.role) >= ROLES.indexOf(role);

function makeFrame() {
    const menu = h("nav", { id: "menu", "aria-label": "Pages" }, GROUPS.map(([label, entries]) =>
        h("div", { class: "group", role: "group", "aria-label": label || null },
        label && h("span", { "aria-hidden": "true" }, label), entries.filter(([, , , least]) => may(least ?? "reader")).map(menuEntry))));
    const state = h("a", { href: "#/health", class: "state" }, "Looking…");
    const mark = h("span", { class: "mark" }, "live");
    const clock = h("span", { class: "clock" });
    const who = h("span", { class: "who" }, `${me.name} · ${me.role}`);
    const main = h("main", { id: "main" });
    const toggle = h("button", { type: "button", class: "menu", "aria-expanded": "false", "aria-controls": "menu", onclick: () => {
        toggle.setAttribute("aria-expanded", String(document.body.classList.toggle("open")));
    } }, "Menu");
    fill(document.body, h("a", { class: "skip", href: "#main", onclick: (event) => {
        event.preventDefault();
        main.querySelector("h1")?.focus();
    } }, "To the content"),
    h("header", null, toggle, h("a", { class: "brand", href: "#/" }, "croupier"), h("div", { role: "status" }, state), mark,
        clock, who, h("button", { type: "button", class: "plain", onclick: signOut }, "Sign out")),
    menu, main, h("div", { id: "said", role: "status" }));
    frame = { menu, main, state, mark, clock, who, toggle };
    watchHealth(frame);
    watchSilence(frame);
}

async function signOut() {
    try {
        await remove("session");
    } catch (error) {
        if (error.status !== 401) { // which says that it is over already
            say(`You may still be signed in. ${error.message}`);
            return;
        }
    }
    me = null;
    frame = null;
    location.hash = "#/sign-in";
}

function showState({ state }, good, text) {
    state.className = `state ${good ? "good" : "bad"}`;
    if (state.textContent !== text) { // what is filled is read aloud
        fill(state, text);
    }
}

/* Whether all is well stands at the top of every page. */
async function watchHealth(mine) {
    while (frame === mine) {
        let pause = HEALTH_SECONDS;
        try {
            const health = await get("health");
            showState(mine, health.status === "ok", health.status === "ok" ? "All stores answer" : "A store is away");
        } catch (error) {
            pause = 1;
            showState(mine, false, error.status === 0 ? "The server does not answer"
                : error.code === "store_unavailable" ? "The platform store is away" : "Health is not known");
        }
        await new Promise((over) => setTimeout(over, pause * 1000));
    }
}

/* Whether what is shown is live stands beside it, and at the end of a session how long it lasts. */
async function watchSilence(mine) {
    let warned = false;
    while (frame === mine) {
        const seconds = silence();
        fill(mine.clock, `${new Date().toISOString().slice(11, 19)} UTC`);
        if (seconds > 0) {
            showState(mine, false, "The server does not answer");
        }
        document.body.classList.toggle("stale", seconds > 0);
        const text = seconds > 0 ? `last answer ${duration(seconds)} ago` : "live";
        if (mine.mark.textContent !== text) {
            fill(mine.mark, text);
        }
        const left = me === null ? Infinity : (Date.parse(me.expires_at) - Date.now()) / 1000;
        if (left < LAST_SECONDS) {
            fill(mine.who, `${me.name} · ${me.role} · ${duration(Math.max(0, left))} left`);
            if (!warned) {
                warned = true;
                say("Your session ends in less than 10 minutes. What you have typed and not sent is lost then.");
            }
        }
        await new Promise((over) => setTimeout(over, 1000));
    }
}

// ---- one page after the other ----

/* What a page is given: its address, and what ends with it. */
function makePage(route, query) {
    lifetime?.abort();
    lifetime = new AbortController();
    const { signal } = lifetime;
    return {
        ...route.params, query, signal, me, may,
        go: (to) => { location.hash = `#${to}`; },
        again: () => { open(); },
        /* Keeps what is searched for in the address, without another step for the back button. */
        remember(asked) {
            const { path } = address();
            const kept = new URLSearchParams(Object.entries(asked).filter(([, value]) => value)).toString();
            history.replaceState(null, "", `#${path}${kept ? `?${kept}` : ""}`);
        },
        /* Is over after that time, or with the page. */
        pause(seconds) {
            return new Promise((over) => {
                const end = () => {
                    clearTimeout(timer);
                    signal.removeEventListener("abort", end); // a page may be open for days
                    over();
                };
                const timer = setTimeout(end, seconds * 1000);
                signal.addEventListener("abort", end);
            });
        },
        /* Calls `ask` now and then again and again, while the page is seen and not hidden. */
        async every(seconds, ask) {
            while (!signal.aborted) {
                if (!document.hidden) {
                    await ask();
                }
                await this.pause(seconds);
            }
        },
    };
}

/* `state` stands beside the title, `actions` opposite it; `up` leads to what the page is a part of. */
function show({ title, content, state, actions, up: above }, focus, entry) {
    const up = above ?? entry;
    const heading = h("h1", { tabindex: -1 }, title);
    document.title = `${title} · croupier`;
    fill(frame.main, up && h("a", { class: "above", href: `#${up[0]}` }, up[1]),
        h("div", { class: "title" }, heading, state, actions && h("div", { class: "actions" }, actions)));
    append(frame.main, content);
    if (focus) {
        heading.focus({ preventScroll: true });
        scrollTo(0, 0);
    }
}

async function open() {
    const { path, query } = address();
    if (path.startsWith("/sign-in")) {
        lifetime?.abort();
        frame = null;
        signInPage(path.slice("/sign-in/".length), welcome);
        return;
    }
    const first = frame === null;
    if (first) {
        makeFrame();
    }
    document.body.classList.remove("open");
    frame.toggle.setAttribute("aria-expanded", "false");
    const route = match(path);
    for (const entry of frame.menu.querySelectorAll("a")) {
        entry.toggleAttribute("aria-current", entry.dataset.path === route?.entry);
        entry.setAttribute("aria-current", entry.dataset.path === route?.entry ? "page" : "false");
    }
    if (route === null) {
        show({ title: "No such page", content: h("p", null, "The address leads nowhere. ", h("a", { href: "#/" }, "To the overview")) }, !first);
        return;
    }
    const page = makePage(route, query);
    const slow = setTimeout(() => show({ title: "…", content: waiting() }, false), 150);
    const up = path !== route.entry && MENU.find(([entry]) => entry === route.entry);
    try {
        const shown = await route.show(page);
        if (!page.signal.aborted) {
            show(shown, !first, up);
        }
    } catch (error) {
        if (error.name !== "AbortError" && !page.signal.aborted && error.status !== 401) {
            const missing = error.status === 404;
            show({ title: missing ? "Not found" : "This page cannot be shown", content: problem(error, missing ? null : open) }, !first, up);
        }
    } finally {
        clearTimeout(slow);
    }
}

/* Signed in: on to where the session ended, or to the overview. */
function welcome(session) {
    me = session;
    const to = sessionStorage.getItem("after") ?? "#/";
    sessionStorage.removeItem("after");
    history.replaceState(null, "", to);
    open();
}

onSignedOut(() => {
    if (me !== null) {
        sessionStorage.setItem("after", location.hash);
        me = null;
        location.hash = "#/sign-in/";
    }
});

// ---- the keyboard ----

const typing = (target) => target.closest("input, textarea, select, dialog") !== null;
let going = false;

function step(by) {
    const links = [...frame.main.querySelectorAll("tbody tr a[href^='#'], tbody tr > td:first-child > button")].filter((link, at, all) =>
        all.findIndex((other) => other.closest("tr") === link.closest("tr")) === at);
    const at = links.indexOf(document.activeElement);
    links[Math.min(links.length - 1, Math.max(0, at + by))]?.focus();
}

function help() {
    const dialog = h("dialog", { "aria-label": "Keys", onclose: () => dialog.remove() }, h("h2", null, "Keys"),
        h("dl", { class: "facts" }, [["/", "search"], ["j, k", "next row, row before"], ["Enter", "open it"], ["?", "this help"],
            ...MENU.map(([, label, letter]) => [`g ${letter}`, label])].map(([key, what]) =>
            h("div", null, h("dt", null, h("kbd", null, key)), h("dd", null, what)))),
        h("div", { class: "buttons" }, h("button", { type: "button", onclick: () => dialog.close() }, "Close")));
    openDialog(dialog);
}

document.addEventListener("keydown", (event) => {
    if (frame === null || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) {
        return;
    }
    const target = going && MENU.find(([, , letter]) => letter === event.key);
    going = event.key === "g";
    if (target) {
        location.hash = `#${target[0]}`;
    } else if (event.key === "/") {
        event.preventDefault();
        frame.main.querySelector("[data-search]")?.focus();
    } else if (event.key === "j" || event.key === "k") {
        step(event.key === "j" ? 1 : -1);
    } else if (event.key === "?") {
        help();
    }
});

// ---- the start ----

addEventListener("hashchange", () => {
    if (me !== null || location.hash.startsWith("#/sign-in")) {
        open();
    } else {
        start();
    }
});

async function start() {
    if (location.hash.startsWith("#/sign-in/")) {
        open();
        return;
    }
    try {
        me = await get("session");
        const left = (Date.parse(me.expires_at) - Date.now()) / 1000;
        await open();
        if (left < 1800) {
            say(`You are signed in for another ${duration(Math.max(0, left))}.`);
        }
    } catch (error) {
        if (error.status === 401) {
            if (location.hash.length > 2 && !location.hash.startsWith("#/sign-in")) {
                sessionStorage.setItem("after", location.hash);
            }
            signInPage("", welcome);
        } else {
            fill(document.body, h("main", { class: "alone" }, h("h1", null, "croupier"), problem(error, start)));
        }
    }
}

start();

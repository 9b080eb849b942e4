// What pages are made of: tables, lists that are searched and continued, forms that are driven by
// descriptions of their fields, dialogs, and the states between (waiting, nothing there, refused).
import { api, ApiError, get, patch, remove } from "./api.js";
import { badge, fill, h, newId, number, sentence, SPORTS, time } from "./dom.js";
import { customerLink } from "./names.js";

// ---- states ----

export const waiting = () => h("p", { class: "quiet", role: "status" }, "Loading…");

/** What there is not, and what to do about it. */
export const empty = (text, ...actions) => h("div", { class: "empty" }, h("p", null, text), actions);

/** What went wrong, and a way on. */
export function problem(error, again) {
    const wait = error.retryAfter ? ` Try again in ${error.retryAfter} s.` : "";
    return h("div", { class: "notice bad", role: "alert" }, h("p", null, `${error.message}${wait}`),
        error.code === "store_unavailable" && h("p", null, "On the server, ", h("code", null, "croupier check"),
            " says which store does not answer, and what to do."),
        again && h("button", { type: "button", onclick: again }, "Try again"));
}

const live = () => document.getElementById("said");
/** Says what was done, for eyes and for who listens. */
export function say(text) {
    const said = live();
    fill(said, text);
    clearTimeout(say.timer);
    say.timer = setTimeout(() => fill(said), 6000);
}

// ---- tables ----

/** columns: {label (absent above buttons), value(row), number: right-aligned, when(row): a time in place of `value`}. `caption`
 *  is for who cannot see the table. A column with `order` can be sorted by: `sorted` is the order in force ("": as the server lists them, by no column),
 *  `sort(order)` is called for another. */
export function table(columns, rows, { caption, sorted, sort } = {}) {
    return scroller(caption, h("table", null,
        h("caption", { class: "unseen" }, caption),
        h("thead", null, h("tr", null, columns.map((column) => head(column, sorted, sort)))),
        h("tbody", null, rows.map((row) => tableRow(columns, row)))));
}

const widths = new ResizeObserver((seen) => seen.forEach(({ target }) => {
    const place = target.closest(".scroll");
    place?.classList.toggle("wide", place.scrollWidth > place.clientWidth + 1);
}));

/** A table, which scrolls where it is wider than the window, and then says so. */
export function scroller(label, shown) {
    widths.observe(shown);
    const place = h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": label }, shown);
    widths.observe(place);
    return place;
}

function head(column, sorted, sort) {
    const label = [column.label ?? h("span", { class: "unseen" }, "Actions"), column.when && h("small", null, " (UTC)")];
    const chosen = sort && column.order !== undefined && column.order === (sorted ?? "");
    return h("th", { scope: "col", class: column.number ? "number" : null, "aria-sort": chosen ? column.direction ?? "ascending" : null },
        sort && column.order !== undefined ? h("button", { type: "button", class: "sort", onclick: () => sort(chosen ? "" : column.order) },
            label, h("span", { "aria-hidden": "true" }, chosen ? (column.direction === "descending" ? " ↓" : " ↑") : " ↕")) : label);
}

function tableRow(columns, row) {
    return h("tr", null, columns.map((column) => h("td", { class: column.number ? "number" : null },
        column.when ? (column.when(row) ? time(column.when(row), true) : column.never ?? "–") : column.value(row) ?? "–")));
}

/** How many rows of a table are there to see: "50 of 600". `found` null: the server counts no further than 10,000. */
export const counted = (shown, found, what = "") => h("span", { class: "count", role: "status" },
    found === undefined ? `${number(shown)} shown` : found === null ? `${number(shown)} of more than ${number(10000)}${what}` : shown < found ? `${number(shown)} of ${number(found)}${what}` : `${number(found)}${what} in all`);

/** A list of the server's, page by page. `options`: path, query, columns, caption, search (label of the search field, or
 *  none), nothing (what to say and offer when there is none), extra (controls beside the search), next (the parameter that a
 *  page's `next` is given as). `reload(query)` asks again. */
export function list(page, { path, query = {}, columns, caption, search, nothing, extra, next: parameter = "cursor" }) {
    const body = h("div");
    let asked = { ...query };
    let turn = 0;

    async function load() {
        turn += 1;
        const mine = turn;
        try {
            const first = await get(path, asked, page.signal);
            if (mine === turn) {
                show(first);
            }
        } catch (error) {
            if (error.name !== "AbortError" && mine === turn) {
                fill(body, problem(error, load));
            }
        }
    }

    function show(first) {
        if (first.items.length === 0) {
            fill(body, asked.q ? empty(`Nothing has “${asked.q}” in it.`) : nothing ?? empty("There is nothing yet."));
            return;
        }
        const shown = table(columns, first.items, { caption, sorted: asked.order, sort: (order) => reload({ order }) });
        fill(body, shown, below(shown, first));
    }

    /* How many there are, and the way to more. */
    function below(shown, { items, found, next }) {
        let rows = items.length;
        const count = h("span", null, (search || next) && counted(rows, found));
        const button = h("button", { type: "button", hidden: next === null || next === undefined, onclick: async () => {
            button.disabled = true;
            try {
                const following = await get(path, { ...asked, [parameter]: next }, page.signal);
                shown.querySelector("tbody").append(...following.items.map((row) => tableRow(columns, row)));
                rows += following.items.length;
                next = following.next;
                fill(count, counted(rows, following.found));
                button.disabled = false;
                button.hidden = next === null || next === undefined;
            } catch (error) {
                button.replaceWith(problem(error, load));
            }
        } }, "Show more");
        return h("div", { class: "below" }, count, button);
    }

    /* What is shown already, without a word when that fails: the next time will do. */
    async function refresh() {
        const rows = body.querySelectorAll("tbody tr").length;
        if (rows === 0 || rows > (asked.limit ?? 50) || body.contains(document.activeElement)) {
            return;
        }
        const mine = turn;
        const first = await get(path, asked, page.signal).catch(() => null);
        if (first !== null && mine === turn) {
            show(first);
        }
    }

    function reload(changed) {
        asked = { ...asked, ...changed };
        if (search || extra) {
            page.remember({ ...asked, limit: null });
        }
        return load();
    }

    const controls = (search || extra) && h("div", { class: "controls" },
        search && searchField(search, asked.q, (q) => reload({ q })), extra);
    fill(body, waiting());
    load();
    return Object.assign(h("div", { class: "list" }, controls, body), { reload, refresh });
}

export function searchField(label, value, changed) {
    let timer;
    return h("input", { type: "search", placeholder: label, "aria-label": label, value: value ?? "", "data-search": true,
        autocomplete: "off", spellcheck: "false", oninput: (event) => {
            clearTimeout(timer);
            timer = setTimeout(() => changed(event.target.value.trim()), 120);
        } });
}

/** One of a few: {value: label}. */
export function choice(label, options, value, changed) {
    return h("label", { class: "inline" }, `${label} `, h("select", { onchange: (event) => changed(event.target.value) },
        Object.entries(options).map(([of, text]) => h("option", { value: of, selected: of === (value ?? "") }, text))));
}

/** One of the records that the server lists, by name; "": all. */
export async function pick(page, label, path, value, changed) {
    const { items } = await get(path, { limit: 200 }, page.signal);
    return choice(label, { "": "all", ...(value && { [value]: value }), ...Object.fromEntries(items.map((one) => [one.id, one.name])) }, value, changed);
}

/** A day; "": any. */
export const day = (label, value, changed) => h("label", { class: "inline" }, `${label} `,
    h("input", { type: "date", value: value ?? "", onchange: (event) => changed(event.target.value) }));

// ---- forms ----

/*
 * A field: {name, label, kind, hint, required, options, placeholder}. A kind reads and writes the field's value as the API has it.
 * `required`: true, or a text where another field will do ("this or the other").
 * What is left empty is null.
 */
const lines = (text) => text.split(/[\s,]+/).filter((line) => line !== "");
const input = (field, id, value, more) => h("input", { id, name: field.name, type: "text", value: value ?? "", autocomplete: "off",
    spellcheck: "false", placeholder: field.placeholder, required: field.required === true, ...more });

const KINDS = {
    text: { make: (field, id, value) => input(field, id, value), read: (control) => control.value.trim() || null },
    lines: {
        make: (field, id, value) => h("textarea", { id, name: field.name, rows: Math.max(2, (value ?? []).length + 1),
            spellcheck: "false", placeholder: field.placeholder }, (value ?? []).join("\n")),
        read: (control) => lines(control.value),
    },
    check: {
        make: (field, id, value) => h("input", { id, name: field.name, type: "checkbox", checked: value === true }),
        read: (control) => control.checked,
    },
    choice: {
        make: (field, id, value) => h("select", { id, name: field.name }, Object.entries(field.options).map(([of, text]) =>
            h("option", { value: of, selected: of === (value ?? "") }, text))),
        read: (control) => control.value || null,
    },
    rate: {
        make: (field, id, value) => input(field, id, value ? `${value.requests}/${value.window_seconds}` : "",
            { placeholder: "600/60" }),
        read: (control) => control.value.trim() || null,
    },
    sports: { make: makeSports, read: readSports },
};

function makeSports(field, id, value) {
    const all = value === undefined || value === "all";
    const has = (key) => all || (Array.isArray(value) && value.includes(key));
    return h("div", { id, class: "checks", role: "group", "aria-label": field.label },
        SPORTS.map(([key, name]) => h("label", null, h("input", { type: "checkbox", value: key, checked: has(key) }), ` ${name}`)));
}

function readSports(control) {
    const chosen = [...control.querySelectorAll("input:checked")].map((box) => box.value);
    return chosen.length === SPORTS.length ? "all" : chosen.length === 0 ? "none" : chosen;
}

/** `options`: fields, values (as the server has them; absent: something new), label (of the button), submit(values), cancel (where
 *  to, without it), changed(): loads again what somebody else has changed meanwhile. With values, only what differs is submitted. */
export function form({ fields, values, label, submit, changed, legend, cancel }) {
    const rows = fields.map((field) => makeRow(field, values));
    const top = h("div", { role: "alert" });
    const button = h("button", { class: "main" }, label);
    const element = h("form", { novalidate: true, "aria-label": legend ?? label, onsubmit: async (event) => {
        event.preventDefault();
        clear(rows, top);
        const given = read(rows, values);
        if (values !== undefined && Object.keys(given).length === 0) {
            fill(top, h("p", { class: "quiet" }, "Nothing is changed."));
            return;
        }
        button.disabled = true;
        try {
            await submit(given);
        } catch (error) {
            refuse(error, rows, top, changed);
        } finally {
            button.disabled = false;
        }
    } }, top, rows.map((row) => row.element), h("div", { class: "buttons" }, button, cancel && h("a", { class: "button", href: `#${cancel}` }, "Cancel")));
    return element;
}

function makeRow(field, values) {
    const id = newId();
    const kind = KINDS[field.kind ?? "text"];
    const control = kind.make(field, id, values === undefined ? field.value : values[field.name]);
    const wrong = h("p", { class: "wrong", id: `${id}w` });
    const hint = field.hint && h("p", { class: "hint", id: `${id}h` }, field.hint);
    control.setAttribute("aria-describedby", [hint && `${id}h`, `${id}w`].filter(Boolean).join(" "));
    const name = h(field.kind === "sports" ? "span" : "label", { for: field.kind === "sports" ? null : id, class: "name" }, field.label,
        field.required && h("small", { "aria-hidden": field.required === true && "true" }, ` ${field.required === true ? "required" : field.required}`));
    return { field, control, wrong, first: kind.read(control), read: () => kind.read(control),
        element: h("div", { class: `field ${field.kind ?? "text"}` }, name, h("div", null, control, hint, wrong)) };
}

function read(rows, values) {
    const given = {};
    for (const row of rows) {
        const value = row.read();
        if (values === undefined ? value !== null : JSON.stringify(value) !== JSON.stringify(row.first)) {
            given[row.field.name] = value;
        }
    }
    return given;
}

function clear(rows, top) {
    fill(top);
    for (const row of rows) {
        fill(row.wrong);
        row.control.removeAttribute("aria-invalid");
    }
}

/* What is wrong stands beside its field, which it need not name. */
function mark(row, message) {
    fill(row.wrong, sentence(message.startsWith(`${row.field.name}: `) ? message.slice(row.field.name.length + 2) : message));
    row.control.setAttribute("aria-invalid", "true");
    return true;
}

function refuse(error, rows, top, changed) {
    if (!(error instanceof ApiError)) {
        throw error;
    }
    const wrong = error.fields ?? [{ field: error.field, message: error.message }];
    const marked = rows.filter((row) => wrong.some(({ field, message }) => field === row.field.name && mark(row, message)));
    if (marked.length > 0) {
        const control = marked[0].control;
        (control.matches("input, textarea, select") ? control : control.querySelector("input")).focus();
    } else if (error.status === 412) {
        const who = error.changedBy ? `${error.changedBy} has changed this` : "Another operator has changed this";
        fill(top, h("div", { class: "notice warn" }, h("p", null, `${who} since you opened it. Nothing was written.`),
            changed && h("button", { type: "button", onclick: changed }, "Show it as it is now")));
    } else {
        fill(top, problem(error));
    }
}

// ---- dialogs ----

/** Opens a dialog, which its page takes along when it goes: what it asks is about that page's object. */
export function openDialog(dialog) {
    document.body.append(dialog);
    addEventListener("hashchange", () => dialog.close(), { once: true });
    dialog.showModal();
}

/** Asks before what is hard to undo. True: do it. */
export function confirm(title, text, action) {
    return new Promise((resolve) => {
        const id = newId();
        const dialog = h("dialog", { "aria-labelledby": id, onclose: () => {
            dialog.remove();
            resolve(dialog.returnValue === "yes");
        } }, h("h2", { id }, title), h("p", null, text), h("div", { class: "buttons" },
            h("button", { type: "button", class: "danger", onclick: () => dialog.close("yes") }, action),
            h("button", { type: "button", autofocus: true, onclick: () => dialog.close("no") }, "Cancel")));
        openDialog(dialog);
    });
}

/** Is a key or a token good? */
export function secretState(one) {
    if (one.revoked_at) {
        return badge("idle", "revoked");
    }
    return one.expires_at && Date.parse(one.expires_at) <= Date.now() ? badge("idle", "expired") : badge("good", "live");
}

/** Asks for what an act needs: a form (see above) in a dialog. */
export function ask(title, text, { fields, label, submit }) {
    const id = newId();
    const dialog = h("dialog", { "aria-labelledby": id, onclose: () => dialog.remove() }, h("h2", { id }, title), h("p", null, text),
        form({ fields, label, submit: async (given) => {
            await submit(given);
            dialog.close();
        } }), h("div", { class: "buttons" }, h("button", { type: "button", onclick: () => dialog.close() }, "Cancel")));
    openDialog(dialog);
}

/** A secret that is seen this once. */
export function showOnce(title, text, secret) {
    const id = newId();
    const said = h("span", { role: "status" });
    const dialog = h("dialog", { "aria-labelledby": id, onclose: () => dialog.remove() },
        h("h2", { id }, title), h("p", null, text),
        h("p", null, h("code", { class: "secret" }, secret)),
        h("div", { class: "buttons" },
            h("button", { type: "button", class: "main", onclick: async () => {
                try {
                    await navigator.clipboard.writeText(secret);
                    fill(said, "Copied.");
                } catch {
                    fill(said, "Select it, and copy it by hand.");
                }
            } }, "Copy"),
            h("button", { type: "button", onclick: () => dialog.close() }, "I have kept it"), " ", said));
    openDialog(dialog);
    return dialog;
}

/** A button that does something, and says what the server says against it. */
export function action(label, run, properties) {
    const said = h("span", { class: "wrong", role: "alert" });
    const button = h("button", { type: "button", ...properties, onclick: async () => {
        button.disabled = true;
        fill(said);
        try {
            await run();
        } catch (error) {
            fill(said, ` ${error.message}`);
        } finally {
            button.disabled = false;
        }
    } }, label);
    return h("span", null, button, said);
}

/** Leads to the changes of a record. */
export const history = (id) => h("a", { class: "button", href: `#/audit?object=${encodeURIComponent(id)}` }, "Changes");

/** The buttons of a record: to see its changes, to edit it, where its page has one (`where`), and to turn it off and on, which asks
 *  with `warning`. */
export const changes = (page, { path, where, id, shown, name, warning }) => [history(id ?? shown.id), page.may("operator") && [
    where && h("a", { class: "button", href: `#/${where}/edit` }, "Edit"),
    action(shown.enabled ? "Disable" : "Enable", async () => {
        if (!shown.enabled || await confirm(`Disable ${name}?`, warning, "Disable")) {
            await patch(path, { enabled: !shown.enabled }, shown);
            say(`${name} is ${shown.enabled ? "disabled" : "enabled"}.`);
            page.again();
        }
    }, { class: shown.enabled ? "danger" : "main" })]];

/** A page that edits what another one (`where`) shows. */
export function editor(page, { path, where, shown, name, fields }) {
    const submit = async (values) => {
        await patch(path, values, shown);
        page.go(`/${where}`);
        say("Saved. It is in force within a second.");
    };
    return { title: `Edit ${name}`, up: [`/${where}`, name], content: page.may("operator")
        ? form({ fields, values: shown, label: "Save", legend: name, changed: page.again, cancel: `/${where}`, submit })
        : empty("Readers change nothing.", h("a", { href: `#/${where}` }, "Back")) };
}

export const section = (title, ...children) => h("section", null, h("h2", null, title), children);

/** How a sandbox customer or provider behaves; `path` is its own. */
export function conduct(page, path) {
    const rules = later(page, async () => {
        const answer = await get(`${path}/conduct`, {}, page.signal);
        const kinds = { pass: "good", fail: "bad" };
        return [table([
            { label: "Rule", value: (row) => row.meaning },
            { label: "Result", value: (row) => badge(kinds[row.result] ?? "idle", row.result) },
            { label: "Requests", value: (row) => h("code", null, row.requests.join(" ")) },
        ], answer.items, { caption: "Conduct" }), page.may("operator") && h("p", { class: "controls" }, action("Begin again", async () => {
            if (await confirm("Begin again?", "What was seen until now is forgotten.", "Begin again")) {
                await remove(`${path}/conduct`);
                page.again();
            }
        }))];
    });
    return section("Conduct", h("p", { class: "quiet" }, "What was seen of its newest 10,000 requests."), rules);
}

/** What customers may not do (403) and was too much (429), of all or of one, as it comes: who is on the telephone with a customer
 *  sees the next attempt. */
export function refusals(page, path) {
    const place = h("div");
    follow(page, path, { refused: (error) => fill(place, problem(error)), show: ({ items }) => fill(place, items.length === 0 ? empty("None.") : table([
        path === "denials" && { label: "Customer", value: (row) => customerLink(row.customer) },
        { label: "Reason", value: (row) => h("code", null, row.reason) },
        { label: "Key", value: (row) => row.key && h("code", null, row.key) },
        { label: "Last from", value: (row) => h("code", null, row.address) },
        { label: "Times", number: true, value: (row) => number(row.count) },
        { label: "Last", when: (row) => row.at },
    ].filter(Boolean), items, { caption: "Refused in the last hour" })) });
    return section("Refused in the last hour", h("p", { class: "quiet" }, "What they may not do (403), and what is over their limit (429)."), place);
}

/** A part of a page that is loaded beside the rest: its failing is its own. */
export function later(page, load) {
    const place = h("div", null, waiting());
    const run = async () => {
        try {
            fill(place, await load());
        } catch (error) {
            if (error.name !== "AbortError") {
                fill(place, problem(error, run));
            }
        }
    };
    run();
    return Object.assign(place, { reload: run });
}

const WAIT_SECONDS = 20; // for something else than what is shown
const PAUSE_SECONDS = 0.5;
const FAILED_SECONDS = 3; // until it is tried again

/** Shows what is at a path, and again whenever it is another: the server waits with its answer until then. A page that is
 *  hidden asks for nothing, and gives its connection back: a browser has few of them. `query()`: what is asked for now;
 *  `known`: the tag of what is shown already; `refused(error)`: called once for as long as the same is wrong. The answer is
 *  a function to be called when `query()` has become another. */
export function follow(page, path, { query = () => ({}), known = null, show, refused }) {
    let turn = new AbortController();
    let wake = () => {};
    let wrong = null;

    async function ask() {
        const mine = new AbortController();
        turn = mine;
        try {
            const answer = await api("GET", path, { query: query(), known, wait: WAIT_SECONDS,
                signal: AbortSignal.any([page.signal, mine.signal]) });
            wrong = null;
            if (answer !== null && !mine.signal.aborted) {
                known = answer.tag;
                show(answer.data);
            }
        } catch (error) {
            if (!(error instanceof ApiError)) {
                if (error.name !== "AbortError") {
                    throw error;
                }
            } else if (error.status !== 401) {
                known = null;
                if (wrong !== error.message) {
                    wrong = error.message;
                    refused(error);
                }
            }
        }
    }

    async function run() {
        while (!page.signal.aborted) {
            if (!document.hidden) {
                await ask();
            }
            await Promise.race([page.pause(wrong === null ? PAUSE_SECONDS : FAILED_SECONDS), new Promise((over) => { wake = over; })]);
        }
    }

    document.addEventListener("visibilitychange", () => (document.hidden ? turn.abort() : wake()), { signal: page.signal });
    run();
    return () => {
        known = null;
        turn.abort();
        wake();
    };
}

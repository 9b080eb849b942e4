// Elements, and how figures, times and amounts are written. Data becomes text nodes and attributes,
// never HTML: the page's Content-Security-Policy would refuse it (Trusted Types).

/** An element. `properties`: attributes; `on…` are listeners; true is an empty attribute, false and null none.
 *  Children: nodes, texts, lists of these; null and false are left out. */
export function h(tag, properties, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties ?? {})) {
        if (name.startsWith("on")) {
            element.addEventListener(name.slice(2), value);
        } else if (value !== null && value !== undefined && value !== false) {
            element.setAttribute(name, value === true ? "" : value);
        }
    }
    append(element, children);
    return element;
}

export function append(element, children) {
    for (const child of [children].flat(Infinity)) {
        if (child !== null && child !== undefined && child !== false) {
            element.append(child);
        }
    }
}

/** An element of a drawing; its properties are attributes. */
export function svg(tag, properties, ...children) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(properties ?? {})) {
        element.setAttribute(name, value);
    }
    append(element, children);
    return element;
}

/** The element with these children in place of what it had. */
export function fill(element, ...children) {
    element.replaceChildren();
    append(element, children);
    return element;
}

let lastId = 0;
/** An id that no other element of the page has. */
export function newId() {
    lastId += 1;
    return `e${lastId}`;
}

// ---- figures, times, amounts ----

const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const fine = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });

export function number(value) {
    if (value === null || value === undefined) {
        return "–";
    }
    return (Math.abs(value) < 100 && !Number.isInteger(value) ? fine : plain).format(value);
}

const UNITS = [["d", 86400], ["h", 3600], ["min", 60]];
/** "1.2 s", "5 min", "3 h": one unit is enough to see whether it is long. */
export function duration(seconds) {
    if (seconds === null || seconds === undefined) {
        return "–";
    }
    for (const [unit, size] of UNITS) {
        if (seconds >= size) {
            const count = seconds / size;
            return `${count < 10 ? Math.floor(count * 10) / 10 : Math.floor(count)} ${unit}`;
        }
    }
    return `${seconds < 10 ? Math.floor(seconds * 10) / 10 : Math.floor(seconds)} s`;
}

export const moment = (text) => text.slice(0, 19).replace("T", " ");

/** A moment, in UTC as logs have it; how long ago stands in its tip. `bare`: its column says that it is UTC. */
export function time(text, bare = false) {
    if (!text) {
        return "–";
    }
    const seconds = (Date.now() - Date.parse(text)) / 1000;
    const tip = `${moment(text)} UTC, ${seconds >= 0 ? `${duration(seconds)} ago` : `in ${duration(-seconds)}`}`;
    return h("time", { datetime: text, title: tip }, moment(text), !bare && h("small", null, " UTC"));
}

/** How long ago, which is what matters of a moment of today; the moment stands in its tip. */
export function ago(text) {
    return text ? h("time", { datetime: text, title: `${moment(text)} UTC` }, `${duration(Math.max(0, (Date.now() - Date.parse(text)) / 1000))} ago`) : "never";
}

/** Minor units as text. Balances are exact up to 2^53, which is what the ledger allows. */
export function amount(minor, exponent, currency) {
    const negative = minor < 0;
    const digits = String(Math.abs(minor)).padStart(exponent + 1, "0");
    const whole = digits.slice(0, digits.length - exponent).replace(/\B(?=(\d{3})+$)/g, ",");
    const rest = exponent > 0 ? `.${digits.slice(-exponent)}` : "";
    return `${negative ? "−" : ""}${whole}${rest}${currency ? ` ${currency}` : ""}`;
}

/** The same with its sign. */
export const signed = (minor, exponent) => `${minor > 0 ? "+" : ""}${amount(minor, exponent)}`;

const SIZES = ["bytes", "KB", "MB", "GB", "TB"];
/** "37.8 MB": as disks are sold, in thousands. */
export function bytes(count) {
    if (count === null || count === undefined || Number.isNaN(count)) {
        return "–";
    }
    const power = Math.min(SIZES.length - 1, Math.floor(Math.log10(Math.max(1, count)) / 3));
    const value = count / 1000 ** power;
    return `${value < 100 && power > 0 ? value.toFixed(1) : Math.round(value)} ${SIZES[power]}`;
}

/** An id, short where it is long, and a button that copies all of it. */
export function copyable(id, most = 16) {
    const said = h("span", { class: "unseen", role: "status" });
    const button = h("button", { type: "button", class: "copy", title: `Copy ${id}`, "aria-label": `Copy ${id}`, onclick: async (event) => {
        event.stopPropagation();
        try {
            await navigator.clipboard.writeText(id);
            button.classList.add("done");
            fill(said, "Copied");
            setTimeout(() => { button.classList.remove("done"); fill(said); }, 1500);
        } catch {
            getSelection().selectAllChildren(text);
        }
    } }, svg("svg", { viewBox: "0 0 16 16", width: 12, height: 12, "aria-hidden": "true" },
        svg("rect", { x: 5.5, y: 5.5, width: 9, height: 9, rx: 1.5 }), svg("path", { d: "M10.5 2.5v-1h-9v9h1" })));
    const text = h("code", { title: id }, id.length <= most ? id : `${id.slice(0, most - 6)}…${id.slice(-4)}`);
    return h("span", { class: "id" }, text, button, said);
}

/** "requests_per_second" as people write it. */
export function words(name) {
    return sentence(name.replaceAll("_", " "));
}

export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** A state that is seen at once, and read. `kind`: good, bad, warn, idle. */
export function badge(kind, text) {
    return h("span", { class: `badge ${kind}` }, text);
}

export const enabledBadge = (enabled) => (enabled ? badge("good", "enabled") : badge("idle", "disabled"));

/** What belongs together as name and value. */
export function facts(pairs) {
    return h("dl", { class: "facts" }, pairs.filter((pair) => pair !== null).map(([name, value]) =>
        h("div", null, h("dt", null, name), h("dd", null, value ?? "–"))));
}

export const SPORTS = [["cricket", "Cricket"], ["football", "Football"], ["tennis", "Tennis"],
    ["horse-racing", "Horse Racing"], ["greyhound-racing", "Greyhound Racing"]];

export const sportName = (key) => SPORTS.find(([of]) => of === key)?.[1] ?? key;

export function sportsText(sports) {
    return sports === "all" ? "all" : sports === "none" || sports.length === 0 ? "none" : sports.map(sportName).join(", ");
}

export const rateText = (rate) => (rate ? `${number(rate.requests)} in ${rate.window_seconds} s` : "none");

// The one chart: lines over time, or bars of days, drawn to scale; what is under the pointer or the finger is read off
// above it, and all of it is in the table below.
import { fill, h, moment, number, svg } from "./dom.js";
import { table } from "./parts.js";

const HEIGHT = 150;
const TOP = 8;
const BOTTOM = 22;
const RIGHT = 12;
const LETTER = 6.7; // about the width of a letter of a label
const DAY = 86400;
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200,
    DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 91 * DAY, 365 * DAY];

const iso = (seconds) => new Date(seconds * 1000).toISOString();
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const dayName = (seconds) => `${Number(iso(seconds).slice(8, 10))} ${MONTHS[Number(iso(seconds).slice(5, 7)) - 1]}`;

/* A tick says as much as tells it from its neighbours. */
function tickName(seconds, step) {
    return seconds % DAY === 0 || step >= DAY ? dayName(seconds) : iso(seconds).slice(11, step < 60 ? 19 : 16);
}

/* Round steps of a scale of numbers, from 0 or the least value on. */
function scaleOf(least, most, room) {
    most = most > least ? most : least + (Math.abs(least) || 1);
    const span = most - least;
    const power = 10 ** Math.floor(Math.log10(span / room));
    const step = power * [1, 2, 2.5, 5, 10].find((one) => one * power * room >= span);
    const from = Math.floor(least / step) * step;
    const ticks = [];
    for (let at = from; at < most + step * 0.999 && ticks.length < 12; at += step) {
        ticks.push(Number(at.toPrecision(12)));
    }
    return ticks.length > 1 ? ticks : [from, from + step];
}

/* A line, broken where there is no value; `stepped`: a value holds until the next. */
function pathOf(points, stepped) {
    let path = "";
    let open = false;
    for (const [x, y] of points) {
        if (y === null) {
            open = false;
            continue;
        }
        path += !open ? `M${x} ${y}h0` : stepped ? `H${x}V${y}` : `L${x} ${y}`;
        open = true;
    }
    return path;
}

/**
 * A chart: `show(at, series, window)` draws it (again). `at`: seconds since 1970; series: [{label, values, colour}], where a
 * value may be null, and colour is the number of one of the four, 1 to 4; 0: it is not drawn. `window`: over how many seconds a value is.
 * Options: `bars`: of days, on each other; `daily`: a value is of a day; `stepped`: values hold; `zero` false: the scale need not begin with 0; `figure`: which
 * series is the large number above (the first).
 */
export function graph(page, { title, unit, bars = false, daily = bars, stepped = false, zero = true, figure = 0, write = number }) {
    const range = h("span", { class: "range" });
    const large = h("b");
    const when = h("span", { class: "when" });
    const legend = h("div", { class: "legend" });
    const canvas = h("div", { class: "canvas" });
    const numbers = h("div");
    const details = h("details", { ontoggle: () => drawTable() }, h("summary", null, "As a table"), numbers);
    const element = h("figure", { class: "graph" }, h("figcaption", null, h("strong", null, title), unit && h("span", null, ` ${unit}`), range),
        h("div", { class: "reading" }, large, when), legend, canvas, details);
    let shown = { at: [], series: [], window: 0 };
    let scene = null; // what the pointer needs: x of each value, and the group of what it moves
    let pointed = null; // a time; null: the newest value is read

    const span = () => (shown.at.length > 1 ? shown.at.at(-1) - shown.at[0] : 0);
    const timeName = (seconds) => (daily ? iso(seconds).slice(0, 10) : span() < DAY ? `${iso(seconds).slice(11, 19)} UTC` : `${moment(iso(seconds)).slice(0, 16)} UTC`);
    function rangeName() {
        const [from, to] = [shown.at[0], shown.at.at(-1)];
        const name = (seconds) => `${span() < DAY ? "" : `${dayName(seconds)} `}${iso(seconds).slice(11, 16)}`;
        return from === undefined ? "" : daily ? `${dayName(from)} – ${dayName(to)}` : `${name(from)} – ${name(to)}`; // in UTC, as the time beside the value says
    }
    const total = (at) => shown.series.reduce((sum, one) => sum + (one.values[at] ?? 0), 0);

    function pointedIndex() {
        if (pointed === null) {
            return shown.at.length - 1;
        }
        let best = 0;
        shown.at.forEach((at, index) => {
            best = Math.abs(at - pointed) < Math.abs(shown.at[best] - pointed) ? index : best;
        });
        return best;
    }

    function read() {
        const index = pointedIndex();
        const value = (one) => write(one.values[index] ?? null);
        fill(large, bars ? write(total(index)) : shown.series.length > 0 ? value(shown.series[figure]) : "–");
        fill(when, index < 0 ? "" : `${shown.window > 0 ? `${shown.window} s to ` : ""}${timeName(shown.at[index])}`);
        fill(range, rangeName());
        fill(legend, shown.series.length > 1 && shown.series.filter((one) => one.colour > 0).map((one) =>
            h("span", null, h("i", { class: `c${one.colour}` }), one.label, " ", h("b", null, value(one)))));
        if (scene !== null) {
            scene.cursor.replaceChildren();
            if (pointed !== null && index >= 0) {
                scene.mark(index);
            }
        }
    }

    function drawTable() {
        if (details.open) {
            const columns = [{ label: daily ? "Day (UTC)" : "Time (UTC)", value: (at) => (daily ? iso(shown.at[at]).slice(0, 10) : moment(iso(shown.at[at]))) },
                ...shown.series.map((one) => ({ label: one.label, number: true, value: (at) => write(one.values[at] ?? null) }))];
            fill(numbers, table(columns, shown.at.map((_, at) => at).reverse(), { caption: title }));
        }
    }

    function drawScales(width, ticks, x, y, left) {
        const lines = ticks.map((tick) => [svg("line", { x1: left, x2: width - RIGHT, y1: y(tick), y2: y(tick), class: "grid" }),
            svg("text", { x: left - 7, y: y(tick) + 4, "text-anchor": "end" }, write(tick))]);
        const room = Math.max(1, (width - left) / (10 * LETTER));
        const step = STEPS.find((one) => (span() + (bars ? DAY : 0)) / one <= room && (!daily || one >= DAY)) ?? STEPS.at(-1);
        const first = Math.ceil(shown.at[0] / step) * step;
        for (let at = first; at <= shown.at.at(-1); at += step) {
            const half = tickName(at, step).length * LETTER / 2;
            if (x(at) - half >= 0 && x(at) + half <= width) {
                lines.push(svg("text", { x: x(at), y: HEIGHT - 5, "text-anchor": "middle" }, tickName(at, step)));
            }
        }
        return lines;
    }

    function drawBars(x, y, band) {
        return shown.at.map((at, index) => {
            let below = 0;
            return shown.series.map((one) => {
                const from = y(below);
                below += one.values[index] ?? 0;
                return svg("rect", { x: x(at) - band / 2, width: band, y: y(below), height: Math.max(0, from - y(below)), class: `c${one.colour}` });
            });
        });
    }

    function drawLines(x, y, points) {
        const drawn = shown.series.map((one, which) => one.colour > 0 && (which === 0 || one.values.some((value) => value)) && [
            shown.series.length === 1 && points[which].every(([, at]) => at !== null) && svg("path", { class: `area c${one.colour}`,
                d: `${pathOf(points[which], stepped)}V${HEIGHT - BOTTOM}H${points[which][0][0]}Z` }),
            svg("path", { d: pathOf(points[which], stepped), class: `line c${one.colour}` })]);
        return drawn.reverse(); // the first lies on top, and what never is lies nowhere
    }

    function draw() {
        const width = canvas.clientWidth;
        if (width === 0 || shown.at.length === 0) {
            return;
        }
        const values = bars ? shown.at.map((_, at) => total(at)) : shown.series.flatMap((one) => one.values.filter((value) => value !== null && value !== undefined));
        const ticks = scaleOf(zero ? Math.min(0, ...values) : Math.min(...values), Math.max(...values, zero ? 0 : -Infinity), 3);
        const left = 12 + LETTER * Math.max(...ticks.map((tick) => write(tick).length));
        const band = (width - left - RIGHT) / shown.at.length;
        const inset = bars ? band / 2 : 0;
        const x = (at) => Math.round(10 * (span() === 0 ? (left + width - RIGHT) / 2
            : left + inset + (at - shown.at[0]) / span() * (width - left - RIGHT - 2 * inset))) / 10;
        const y = (value) => Math.round(10 * (HEIGHT - BOTTOM - (value - ticks[0]) / (ticks.at(-1) - ticks[0]) * (HEIGHT - TOP - BOTTOM))) / 10;
        const points = shown.series.map((one) => one.values.map((value, at) => [x(shown.at[at]), value === null || value === undefined ? null : y(value)]));
        const cursor = svg("g");
        const drawing = svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": `${title}: ${shown.series.map((one) =>
            `${one.label} ${write(one.values.at(-1) ?? null)}`).join(", ")}. The table below has all values.` },
        drawScales(width, ticks, x, y, left), bars ? drawBars(x, y, Math.max(1, band * 0.7)) : drawLines(x, y, points), cursor);
        scene = { x, cursor, mark(index) {
            cursor.append(svg("line", { x1: x(shown.at[index]), x2: x(shown.at[index]), y1: TOP, y2: HEIGHT - BOTTOM, class: "cursor" }),
                ...(bars ? [] : shown.series.flatMap((one, which) => (one.colour === 0 || points[which][index][1] === null ? []
                    : [svg("circle", { cx: points[which][index][0], cy: points[which][index][1], r: 3.5, class: `dot c${one.colour}` })]))));
        } };
        fill(canvas, drawing);
    }

    function point(event) {
        if (scene === null) {
            return;
        }
        const x = event.clientX - canvas.getBoundingClientRect().left;
        pointed = shown.at.reduce((best, at) => (Math.abs(scene.x(at) - x) < Math.abs(scene.x(best) - x) ? at : best), shown.at[0]);
        read();
    }

    for (const kind of ["pointermove", "pointerdown"]) {
        canvas.addEventListener(kind, point);
    }
    const leave = () => {
        pointed = null;
        read();
    };
    canvas.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && leave()); // a finger is lifted to see
    document.addEventListener("pointerdown", (event) => pointed !== null && !canvas.contains(event.target) && leave(), { signal: page.signal });
    const sizes = new ResizeObserver(() => requestAnimationFrame(() => {
        draw();
        read();
    }));
    sizes.observe(canvas);
    page.signal.addEventListener("abort", () => sizes.disconnect());
    return { element, show(at, series, window = 0) {
        shown = { at, series, window };
        draw();
        read();
        drawTable();
    } };
}

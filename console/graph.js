// The one chart: lines over time, or bars, and beside it the table of what it shows.
import { fill, h, number } from "./dom.js";
import { table } from "./parts.js";

let loading = null;
/** Chart.js, which is large, is fetched when the first chart is drawn. */
function library() {
    loading ??= import("/console/chart.js").then(() => globalThis.Chart);
    return loading;
}

const COLOURS = ["--line-1", "--line-2", "--line-3", "--line-4"];
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function settings(title, bars, unit) {
    const ink = colour("--quiet");
    const grid = colour("--line");
    return {
        type: bars ? "bar" : "line",
        data: { labels: [], datasets: [] },
        options: {
            animation: false, responsive: true, maintainAspectRatio: false, normalized: true,
            interaction: { mode: "index", intersect: false },
            elements: { point: { radius: 0, hitRadius: 8 }, line: { borderWidth: 1.5, tension: 0 } },
            scales: {
                x: { ticks: { color: ink, maxTicksLimit: 5, maxRotation: 0, autoSkipPadding: 16 }, grid: { display: false } },
                y: { beginAtZero: bars || title !== "Balance", ticks: { color: ink, maxTicksLimit: 5, callback: (value) => number(value) },
                    grid: { color: grid } },
            },
            plugins: {
                legend: { display: false },
                tooltip: { callbacks: { label: (item) => ` ${item.dataset.label}: ${number(item.parsed.y)}${unit ? ` ${unit}` : ""}` } },
            },
        },
    };
}

/**
 * A chart: `show(labels, series)` draws it (again). series: [{label, values, colour}], where a value may be null, and
 * colour is the number of one of the four, 1 to 4. It lives as long as its page.
 */
export function graph(page, { title, unit, bars = false, write = number }) {
    const canvas = h("canvas", { role: "img", "aria-label": title });
    const legend = h("div", { class: "legend" });
    const numbers = h("div");
    const details = h("details", { ontoggle: () => drawTable() }, h("summary", null, "As a table"), numbers);
    const element = h("figure", { class: "graph" }, h("figcaption", null, h("strong", null, title), unit && ` ${unit}`, legend),
        h("div", { class: "canvas" }, canvas), details);
    let chart = null;
    let shown = { labels: [], series: [] };

    function drawTable() {
        if (!details.open) {
            return;
        }
        const columns = [{ label: bars ? "Day" : "Time", value: (at) => shown.labels[at] }, ...shown.series.map((one) =>
            ({ label: one.label, number: true, value: (at) => write(one.values[at]) }))];
        fill(numbers, table(columns, shown.labels.map((_, at) => at).reverse(), { caption: title }));
    }

    function drawLegend() {
        fill(legend, shown.series.map((one) => h("span", null, h("i", { class: `c${one.colour}` }), one.label, " ",
            h("b", null, write(one.values.at(-1) ?? null)))));
        canvas.setAttribute("aria-label", `${title}: ${shown.series.map((one) =>
            `${one.label} ${write(one.values.at(-1) ?? null)}`).join(", ")}. The table below has all values.`);
    }

    async function draw() {
        const Chart = await library();
        if (page.signal.aborted || !canvas.isConnected) {
            return;
        }
        chart ??= new Chart(canvas, settings(title, bars, unit));
        chart.data.labels = shown.labels;
        chart.data.datasets = shown.series.map((one) => ({ label: one.label, data: one.values,
            borderColor: colour(COLOURS[one.colour - 1]), backgroundColor: colour(COLOURS[one.colour - 1]) }));
        chart.update("none");
    }

    function theme() {
        chart?.destroy();
        chart = null;
        draw();
    }

    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", theme, { signal: page.signal });
    page.signal.addEventListener("abort", () => chart?.destroy());
    return { element, show(labels, series) {
        shown = { labels, series };
        drawLegend();
        drawTable();
        requestAnimationFrame(draw);
    } };
}

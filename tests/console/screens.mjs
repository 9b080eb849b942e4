// Photographs the console for README.md and docs/console.md. Started, over a demo, by tools/make_screens.
//
//   node screens.mjs '{"modules": DIRECTORY of node_modules, "chromium": PROGRAM, "pictures": DIRECTORY, "link": the sign-in link}'
import { createRequire } from "node:module";

const given = JSON.parse(process.argv[2]);
const puppeteer = createRequire(`${given.modules}/`)("puppeteer-core");
const SAMPLES = 40; // of the overview's history, which has one every two seconds

const browser = await puppeteer.launch({ executablePath: given.chromium,
    args: ["--disable-dev-shm-usage", ...(process.getuid() === 0 ? ["--no-sandbox"] : [])] });
const page = await browser.newPage();
page.setDefaultTimeout(300_000);
await page.setViewport({ width: 1280, height: 800 });

const ask = (path) => page.evaluate(async (of) => (await fetch(`/admin/v1/${of}`)).json(), path);
const theme = (value) => page.emulateMediaFeatures([{ name: "prefers-color-scheme", value }, { name: "prefers-reduced-motion", value: "reduce" }]);

async function shoot(name, hash, ready) {
    await page.evaluate((to) => { location.hash = to; }, hash);
    await page.waitForFunction(ready);
    await page.evaluate(() => document.fonts.ready);
    await page.screenshot({ path: `${given.pictures}/${name}.webp`, type: "webp", quality: 75 });
    console.log(`${given.pictures}/${name}.webp`);
}

try {
    await theme("light");
    await page.goto(given.link);
    await page.waitForFunction(() => document.querySelector("h1")?.textContent === "Overview");
    while ((await ask("overview")).history.at.length < SAMPLES) {
        await new Promise((over) => setTimeout(over, 1000));
    }
    const [player] = (await ask("players?limit=1")).items;
    await shoot("console", "/", () => document.querySelectorAll(".graphs svg").length === 6 && document.querySelector("main")?.textContent.includes("Horse Racing"));
    await shoot("console-player", `/players/${player.player_id}`, () => {
        const rows = document.querySelectorAll("tr.opens");
        if (rows.length > 8 && document.querySelector("tr.details") === null) {
            [...rows].find((row) => row.textContent.includes("Bet and win"))?.querySelector("button.open").click();
        }
        return document.querySelector("tr.details") !== null && document.querySelector("figure svg") !== null;
    });
    await theme("dark");
    await shoot("console-dark", `/customers/${player.customer}`, () => document.querySelector("figure svg") !== null
        && document.querySelectorAll("section tbody tr").length > 2 && !document.querySelector("main").textContent.includes("Loading…"));
} finally {
    await browser.close();
}

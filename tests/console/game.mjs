// Plays the demo's sample game in a real Chromium with the mouse, at the sizes of a desktop and a phone. Started by
// tests/service/test_console_pages.py:
//
//   node game.mjs '{"modules": DIRECTORY of node_modules, "chromium": PROGRAM, "url": of a launch}'
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const given = JSON.parse(process.argv[2]);
const puppeteer = createRequire(`${given.modules}/`)("puppeteer-core");
const PATIENCE_MS = 60_000;
const browser = await puppeteer.launch({ executablePath: given.chromium, protocolTimeout: 2 * PATIENCE_MS,
    args: ["--disable-dev-shm-usage", ...(process.getuid() === 0 ? ["--no-sandbox"] : [])] });
const page = await browser.newPage();
page.setDefaultTimeout(PATIENCE_MS);
const complaints = [];
page.on("pageerror", (error) => complaints.push(error.stack));
await page.emulateMediaFeatures([{ name: "prefers-reduced-motion", value: "reduce" }]);

const balance = () => page.$eval("#balance", (shown) => shown.textContent);

/** Points of an element, in a grid, at which the mouse would hit another one. */
const covered = (selector) => page.$eval(selector, (control) => {
    const { x, y, width, height } = control.getBoundingClientRect();
    const at = [0.1, 0.3, 0.5, 0.7, 0.9];
    return at.flatMap((right) => at.map((down) => [x + right * width, y + down * height]))
        .filter((point) => !control.contains(document.elementFromPoint(...point)));
});

for (const [width, height] of [[1280, 860], [390, 844]]) {
    await page.setViewport({ width, height });
    await page.goto(given.url);
    await page.waitForSelector("#board:not([hidden])").catch(async (error) => {
        throw new Error(`${await page.$eval("body", (body) => body.innerText)} ${complaints}`, { cause: error });
    });
    const button = await page.waitForSelector("#bet button", { visible: true });
    await button.scrollIntoView();
    for (const selector of ["#bet button", "#stake"]) {
        assert.deepEqual(await covered(selector), [], `${selector} is covered at ${width} wide`);
    }
    await page.select("#stake", "500");
    const before = await balance();
    const box = await button.boundingBox();
    await page.mouse.click(box.x + box.width * 0.9, box.y + box.height * 0.9);
    await page.waitForFunction(() => /^(Nothing this time|It pays)/.test(document.getElementById("said").textContent));
    const said = await page.$eval("#said", (shown) => shown.textContent);
    assert.equal(await balance() === before, said.includes("pays 1 times"), `${before}, then ${await balance()}: ${said}`);
}
assert.deepEqual(complaints, []);
await browser.close();

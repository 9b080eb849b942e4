// Walks through the operator's console in a real Chromium, as an operator would: every page and
// every change, by mouse, keyboard and phone, in light and dark. Started, over a demo, by
// tests/service/test_console_pages.py.
//
//   node walk.mjs '{"modules": DIRECTORY of node_modules, "chromium": PROGRAM,
//                   "pictures": DIRECTORY, "photographs": whether each step leaves one there, "link": the sign-in link, "api": URL of the customers'
//                   API, "key": a customer's key, "player": {"id", "reference", "customer"}, "program": croupier,
//                   "config": of the demo, "backup": a directory to make, "downloads": one that is there}'
//
// After every step the page is looked at by axe, and photographed where that is wanted. At the end nothing may have been
// written on the browser's console, and nothing asked of another server. A step that fails names
// itself and leaves failed.png.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";

const given = JSON.parse(process.argv[2]);
const require = createRequire(`${given.modules}/`);
const puppeteer = require("puppeteer-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const PATIENCE_MS = 60_000; // for a machine that has much else to do; nothing waits that long when all is well
// axe judges contrasts, also in the middle of a price's flash.
const STILL = { name: "prefers-reduced-motion", value: "reduce" };
const origin = new URL(given.link).origin;

const browser = await puppeteer.launch({ executablePath: given.chromium, protocolTimeout: 2 * PATIENCE_MS,
    args: ["--disable-dev-shm-usage", ...(process.getuid() === 0 ? ["--no-sandbox"] : [])] });
const complaints = [];
let page = await open(browser.defaultBrowserContext());
let step = "start";

// ---- what a person does ----

async function open(context) {
    const opened = await context.newPage();
    opened.setDefaultTimeout(PATIENCE_MS);
    // Puppeteer would look at every frame, for which the processor has to draw each.
    const wait = opened.waitForFunction.bind(opened);
    opened.waitForFunction = (condition, options, ...more) => wait(condition, { polling: 50, ...options }, ...more);
    await opened.setViewport({ width: 1280, height: 860 });
    await opened.emulateMediaFeatures([STILL]);
    // A refusal of the API, which a step provokes, is written there by the browser itself.
    opened.on("console", (message) => (/^Failed to load resource: .* status of 4(01|04|12|22)/.test(message.text())
        && message.location().url.startsWith(`${origin}/admin/v1/`)) || complaints.push(`${step}: ${message.type()}: ${message.text()}`));
    opened.on("pageerror", (error) => complaints.push(`${step}: ${error.stack}`));
    opened.on("request", (request) => request.url().startsWith(`${origin}/`) || request.url().startsWith("data:") // the browser's own sign of a calendar
        || complaints.push(`${step}: asks for ${request.url()}`));
    return opened;
}

const named = (role, name) => `::-p-aria([name="${name}"][role="${role}"])`;
const visit = (hash) => page.evaluate((to) => { location.hash = to; }, hash);
const title = (text) => page.waitForFunction((wanted) => document.querySelector("h1")?.textContent === wanted, {}, text);
const seen = (text, within = "body") => page.waitForFunction((wanted, where) =>
    document.querySelector(where)?.textContent.includes(wanted), {}, text, within);
const gone = (text) => page.waitForFunction((wanted) => !document.body.textContent.includes(wanted), {}, text);
/** Tries again when what is pressed is replaced meanwhile, as rows of a live list are. */
const press = (name, role = "button") => page.locator(named(role, name)).click();
const rows = (count) => page.waitForFunction((wanted) => document.querySelectorAll("main tbody tr").length === wanted, {}, count);

async function write(name, text, role = "textbox") {
    const field = await page.waitForSelector(named(role, name), { visible: true });
    await field.evaluate((control) => { control.value = ""; });
    await field.type(text);
}

/** Presses a button of the dialog that asks before, or shows a secret, which is answered. */
async function inDialog(name) {
    await page.waitForSelector("dialog[open]");
    const secret = await page.$eval("dialog[open]", (dialog) => dialog.querySelector(".secret")?.textContent);
    await page.locator(`dialog[open] button::-p-text(${name})`).click();
    await page.waitForFunction(() => document.querySelector("dialog[open]") === null);
    return secret;
}

/** Does what has the page shown again, and waits for that: what is pressed before is pressed on the page that goes. */
async function shownAgain(run) {
    await page.$eval("h1", (heading) => { heading.dataset.gone = "soon"; });
    await run();
    await page.waitForFunction(() => document.querySelector("h1:not([data-gone])") !== null);
}

async function wrongAt(label) {
    await page.waitForFunction((name) => {
        const control = document.activeElement;
        const row = control?.closest(".field");
        return control?.getAttribute("aria-invalid") === "true" && row.querySelector(".name").firstChild.textContent === name
            && row.querySelector(".wrong").textContent !== "";
    }, {}, label);
}

const asCustomer = (path, key) => fetch(`${given.api}${path}`, { headers: { "X-Api-Key": key } });

async function eventually(condition) {
    for (const end = Date.now() + PATIENCE_MS; Date.now() < end;) {
        if (await condition()) {
            return;
        }
        await new Promise((over) => setTimeout(over, 50));
    }
    assert.fail("did not come to be");
}

// ---- what is looked at after every step ----

/** Placeholders and names of fields that do not fit into their places. */
function cutTexts() {
    const pen = document.createElement("canvas").getContext("2d");
    const names = [...document.querySelectorAll(".field .name")].filter((name) => name.scrollWidth > name.clientWidth).map((name) => name.textContent);
    return [...document.querySelectorAll("input[placeholder]")].filter((field) => {
        const style = getComputedStyle(field);
        pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
        return field.clientWidth > 0 && pen.measureText(field.placeholder).width > field.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    }).map((field) => field.placeholder).concat(names);
}

async function look(name, rules) {
    assert.deepEqual(await page.evaluate(cutTexts), [], "texts are cut");
    if (!await page.evaluate(() => "axe" in globalThis)) {
        await page.evaluate(axe);
    }
    const { violations } = await page.evaluate((only) => globalThis.axe.run(document, only ? { runOnly: only } : {}), rules);
    assert.deepEqual(violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 200)).join(" | ")}`), [], "axe");
    if (given.photographs) {
        await page.screenshot({ path: `${given.pictures}/${name}.png`, fullPage: true, optimizeForSpeed: true });
    }
}

const steps = [];
const walk = (name, run) => steps.push([name, run]);

// ---- the walk ----

walk("sign_in", async () => {
    await page.goto(`${origin}/#/sign-in/lnk_0000000000000000000000000000000000000000000`);
    await page.waitForSelector("[role=alert]");
    await look("sign_in_refused");
    await page.goto("about:blank");
    const answer = await page.goto(given.link);
    const policy = answer.headers()["content-security-policy"];
    assert.match(policy, /default-src 'none'/);
    assert.doesNotMatch(policy, /unsafe|\*|http:|https:|data:/);
    await title("Overview");
    assert.doesNotMatch(page.url(), /lnk_/);
});

walk("first_view", async () => {
    await page.reload();
    // Written down and not asserted: a machine that has much else to do takes long.
    const took = await page.waitForFunction(() => document.querySelectorAll(".graphs svg").length === 6 && ({ figures_ms: performance.now(),
        first_paint_ms: performance.getEntriesByName("first-contentful-paint")[0]?.startTime }));
    writeFileSync(`${given.pictures}/first_view.json`, JSON.stringify(await took.jsonValue()));
});

/** What Health shows in amber is not called well by the overview. */
walk("backup", async () => {
    await seen("No backup was made yet.", ".notice.warn");
    assert.equal(await page.$(".notice.good"), null);
    await press("No backup was made yet.", "link");
    await title("Health");
    await seen("never", "main .badge.warn");
    execFileSync(given.program, ["backup", given.backup, "-c", given.config]);
    await eventually(() => page.evaluate(() => ![...document.querySelectorAll("main .badge.warn")].some((one) => one.textContent === "never")));
    await visit("#/");
    await seen("Nothing is wrong", "main");
});

walk("frozen", async () => {
    await seen("Nothing is wrong", "main");
    process.kill(given.pid, "SIGSTOP");
    try {
        const state = await page.waitForFunction(() => document.querySelector(".mark").textContent.startsWith("last answer")
            && document.querySelector("header .state").textContent);
        assert.equal(await state.jsonValue(), "The server does not answer");
        await seen("The server does not answer", "main");
        assert.equal(await page.$(".notice.good"), null);
        await look("frozen", ["wcag2a", "wcag2aa"]);
    } finally {
        process.kill(given.pid, "SIGCONT");
    }
    await seen("live", ".mark");
    await seen("Nothing is wrong", "main");
});

walk("first_steps", async () => {
    // What an empty system is answered.
    const overview = await page.evaluate(async () => (await fetch("/admin/v1/overview")).json());
    overview.feed.forEach((row) => { row.age_seconds = null; });
    overview.feed[0].stale = true; // what is wrong still stands first
    const answer = (request) => {
        const body = request.url().includes("/admin/v1/overview") ? overview
            : /\/admin\/v1\/(customers|providers|games)\?limit/.test(request.url()) ? { items: [], found: 0, next: null } : null;
        return body === null ? request.continue() : request.respond({ contentType: "application/json", body: JSON.stringify(body) });
    };
    await page.setRequestInterception(true);
    page.on("request", answer);
    await visit("#/customers/new");
    await title("Add a customer");
    await visit("#/");
    await seen("First steps", "main");
    await page.waitForSelector(".notice.warn + .steps");
    assert.deepEqual(await page.$$eval(".steps li", (steps) => steps.map((step) => [step.querySelector(".badge").textContent, step.querySelector("a").hash])), [
        ["✔ done", "#/health"], ["to do", "#/customers/new"], ["to do", "#/customers"], ["to do", "#/feed"],
        ["to do", "#/casino/providers/new"], ["to do", "#/casino/import"]]);
    await seen("croupier customer add", ".steps");
    await look("first_steps");
    page.off("request", answer);
    await page.setRequestInterception(false);
    await visit("#/customers");
    await title("Customers");
    await visit("#/");
    await seen("Nothing is wrong", "main");
});

walk("overview", async () => {
    await page.waitForFunction(() => document.querySelectorAll(".graphs svg").length === 6);
    for (const sport of ["Cricket", "Football", "Tennis", "Horse Racing", "Greyhound Racing"]) {
        await seen(sport, "main");
    }
    await page.locator("figure summary").click();
    await page.waitForSelector("figure tbody tr");
    // The value under the pointer is read off: one of the table, with its time.
    const canvas = await (await page.$("figure .canvas")).boundingBox();
    await page.mouse.move(canvas.x + canvas.width / 2, canvas.y + 40);
    await page.waitForSelector("figure .cursor");
    const times = await page.$$eval("figure tbody td:first-child", (cells) => cells.map((cell) => cell.textContent.slice(11)));
    assert.ok(times.includes((/(..:..:..) UTC$/).exec(await page.$eval("figure .when", (when) => when.textContent))[1]));
    await page.mouse.move(5, 5);
    await page.waitForFunction(() => document.querySelector("figure .cursor") === null);
    // It moves by itself: a denial is seen, and the last row of the table is another one.
    const row = () => page.$eval("figure tbody tr", (one) => one.textContent);
    const before = await row();
    assert.equal((await asCustomer("/sports", "no key")).status, 403);
    await seen("unusable_key", "main");
    await eventually(async () => await row() !== before);
    // One metric has one number, also when both spans are looked at.
    const [live, last] = await page.evaluate(async () => {
        const { live: now, history } = await (await fetch("/admin/v1/overview")).json();
        return [now.p99_ms, history.series.p99_ms.at(-1)];
    });
    assert.equal(live, last);
    await page.select("main select", "hours");
    await page.waitForFunction(() => location.hash === "#/?span=hours");
});

walk("customers", async () => {
    await press("Customers", "link");
    await title("Customers");
    await write("Search by name or id", "weekend", "searchbox");
    await rows(1);
    await press("Weekend Picks", "link");
    await title("Weekend Picks");
    await page.goBack();
    await title("Customers");
    await page.waitForFunction(() => document.querySelector("[type=search]").value === "weekend");
    await write("Search by name or id", "nothing has this", "searchbox");
    await seen("Nothing has");
});

const NAME = "<img src=x onerror=alert(1)>";

walk("customer_added", async () => {
    await visit("#/customers/new");
    await press("Add");
    await wrongAt("Name");
    await write("Networks", "nonsense");
    await write("Rate limit", "nonsense");
    await press("Add");
    await wrongAt("Name");
    // All that is wrong is said at once, each beside its field.
    await page.waitForFunction(() => ["name", "cidrs", "rate"].every((name) => document.querySelector(`[name=${name}]`).closest(".field")
        .querySelector(".wrong").textContent !== ""));
    await look("customer_refused");
    await write("Name", NAME);
    await write("Networks", "127.0.0.0/8");
    await write("Rate limit", "1000/60");
    await press("Add");
    await title(NAME);
});

walk("key_issued_and_revoked", async () => {
    await page.locator("::-p-text(Issue a key)").click();
    await write("Label", "walk");
    await press("Issue");
    const key = await inDialog("I have kept it");
    assert.match(key, /^crk_[0-9A-Za-z]{36}$/);
    await eventually(async () => (await asCustomer("/sports", key)).status === 200);
    await seen(key.slice(0, 8));
    await press("Revoke");
    await inDialog("Revoke");
    await seen("revoked");
    // Of a change without an answer nobody knows whether it was made. The list shows it.
    await page.evaluate(async () => fetch("/admin/v1/keys", { method: "POST", headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ customer: location.hash.split("/").at(-1), label: "unheard" }) }));
    const answer = (request) => (request.method() === "POST" ? request.abort() : request.continue());
    await page.setRequestInterception(true);
    page.on("request", answer);
    await press("Issue");
    await seen("No answer came. It may have been done", "form [role=alert]");
    await seen("unheard", "main tbody");
    page.off("request", answer);
    await page.setRequestInterception(false);
    complaints.length = 0; // the browser's own, of what was not sent
    await eventually(async () => (await asCustomer("/sports", key)).status === 403);
    const refused = "[aria-label='Refused in the last hour']";
    await seen("revoked_key", refused);
    assert.ok(!(await page.content()).includes(key));
    const customer = await page.evaluate(() => location.hash);
    await visit("#/");
    await seen(NAME, refused);
    await visit(customer);
    await title(NAME);
});

walk("customer_changed", async () => {
    // It shows first, and is edited on demand.
    assert.equal(await page.$("input[value=tennis]"), null);
    await press("Edit", "link");
    await title(`Edit ${NAME}`);
    await page.click("input[value=tennis]");
    await press("Save");
    await title(NAME);
    await seen("Saved");
    await seen("Cricket, Football, Horse Racing, Greyhound Racing", "main");
    await press("Edit", "link");
    await title(`Edit ${NAME}`);
    await page.waitForFunction(() => document.querySelector("input[value=tennis]")?.checked === false);
    // Somebody else changes it meanwhile.
    await page.evaluate(async () => {
        const id = location.hash.split("/").at(-2);
        await fetch(`/admin/v1/customers/${id}`, { method: "PATCH", headers: { "Content-Type": "application/json" }, body: "{\"casino\":true}" });
    });
    await write("Rate limit", "5/10");
    await press("Save");
    await seen("since you opened it");
    await look("customer_changed_meanwhile");
    await press("Show it as it is now");
    await page.waitForFunction(() => document.querySelector("input[name=casino]")?.checked === true);
    await press("Cancel", "link");
    await title(NAME);
});

walk("customer_games", async () => {
    await page.waitForSelector("input[name=every_game]");
    await page.$eval("textarea[name=games]", (field) => { field.value = "no-such-game"; });
    await page.$eval("input[name=every_game]", (box) => { box.checked = false; });
    await page.$eval("textarea[name=games]", (field) => field.closest("form").requestSubmit());
    await page.waitForFunction(() => document.querySelector("textarea[name=games]").closest("form").textContent.includes("no-such-game")
        || document.querySelector("form[aria-label=Games] [role=alert]").textContent !== "" || document.querySelector("form[aria-label=Games] .wrong").textContent !== ""
        || document.querySelector("textarea[name=games]").getAttribute("aria-invalid") === "true");
    await page.$eval("textarea[name=games]", (field) => { field.value = "anubis-falls"; });
    await page.$eval("textarea[name=games]", (field) => field.closest("form").requestSubmit());
    await seen("Saved");
});

walk("customer_disabled", async () => {
    for (const [word, state] of [["disable", "disabled"], ["enable", "enabled"]]) { // by somebody else
        execFileSync(given.program, ["customer", word, (await page.evaluate(() => location.hash)).split("/").at(-1), "-c", given.config]);
        await page.waitForFunction((wanted) => document.querySelector("main .title .badge").textContent === wanted, {}, state);
    }
    await press("Disable");
    await inDialog("Disable");
    await press("Enable");
    await seen("is enabled");
});

/** A form names what is required before it is sent: just what is refused when it is sent empty. */
walk("required", async () => {
    for (const [path, marks] of [["/customers/new", { name: "required" }], ["/addresses/new", { address: "required" }],
        ["/casino/providers/new", { id: "required", name: "required", launch_url: "this or the endpoint", launch_endpoint: "this or the address" }]]) {
        await visit("#/health");
        await title("Health");
        await visit(`#${path}`);
        await page.waitForSelector("main form .field");
        assert.deepEqual(await page.$$eval("main form .field:has(.name small)", (fields) => Object.fromEntries(fields.map((field) =>
            [field.querySelector("input").name, field.querySelector(".name small").textContent.trim()]))), marks);
        await press("Add");
        await page.waitForSelector("main form [aria-invalid]");
        assert.deepEqual(await page.$$eval("main form [aria-invalid]", (wrong) => wrong.map((one) => one.name)),
            Object.keys(marks).filter((name) => marks[name] === "required"));
    }
});

walk("address", async () => {
    await visit("#/addresses/new");
    await title("Add an address");
    await write("Address", "not an address");
    await press("Add");
    await wrongAt("Address");
    await write("Address", "127.0.0.77");
    await press("Add");
    await title("Addresses");
    await press("127.0.0.77", "link");
    await title("127.0.0.77");
    await press("Edit", "link");
    await title("Edit 127.0.0.77");
    await page.click("input[value=tennis]");
    await write("Rate limit", "nonsense");
    await press("Save");
    await wrongAt("Rate limit");
    await write("Rate limit", "7/60");
    await press("Save");
    await title("127.0.0.77");
    await seen("Saved");
    await look("address_changed");
    await visit("#/addresses");
    await seen("7 in 60 s", "main tbody");
    await visit("#/addresses/127.0.0.77");
    await title("127.0.0.77");
    await press("Remove");
    await inDialog("Remove");
    await title("Addresses");
    await gone("127.0.0.77 ");
});

walk("feed", async () => {
    await press("Feed", "link");
    await title("Feed");
    await press("Cricket", "link");
    await title("Cricket");
    await rows(24);
    // As the catalog has them is no order of a column. A press sorts, and another takes it back.
    assert.equal(await page.$("th[aria-sort]"), null);
    await press("Odds");
    await page.waitForFunction(() => location.hash === "#/feed/cricket?order=age");
    await page.waitForSelector("th[aria-sort=ascending]");
    await press("Odds");
    await page.waitForFunction(() => location.hash === "#/feed/cricket");
    await page.waitForFunction(() => document.querySelector("th[aria-sort]") === null);
    await press("Asked for");
    await page.waitForSelector("th[aria-sort=descending]");
    await page.waitForFunction(() => location.hash === "#/feed/cricket?order=interest");
    const first = await page.$eval("main tbody code", (id) => id.textContent);
    await write("Search events by name or id", first, "searchbox");
    await rows(1);
});

/** The event of the page moves, and shows a market of fancy bets as its body has it. Returns that market. */
async function watchEvent() {
    await page.waitForSelector(".ladder");
    await page.waitForSelector(".up, .down");
    await page.waitForFunction(() => [...document.querySelectorAll(".ladder td")].some((cell) => cell.textContent === "–"));
    assert.deepEqual(await page.$$eval(".ladder b", (prices) => prices.filter((one) => Number(one.textContent) === 0).length), 0);
    // Also of a fancy market: each name with its lines and prices as the body has them.
    const body = JSON.parse(await page.$eval("pre", (bytes) => bytes.textContent));
    const fancy = body.odds.find((market) => market.gtype === "fancy");
    await page.waitForFunction((wanted) => [...document.querySelectorAll(`[aria-label="${wanted.marketName}"] tbody tr`)].some((row) =>
        row.textContent.startsWith(wanted.section[0].nat) && row.querySelector(".back b") !== null && row.querySelector(".lay small").textContent === "100"), {}, fancy);
    return fancy;
}

walk("event", async () => {
    let fancy;
    await page.locator("main tbody a").click();
    for (let row = 2; fancy === undefined; row++) {
        try {
            fancy = await watchEvent();
        } catch (error) {
            // An event may end just then: its prices stand still, and it leaves the catalog. Another one does as well.
            if (row > 4 || !/SETTLE|CLOSED|SUSPENDED|odds_not_found|event_not_found/.test(await page.$eval("main", (main) => main.textContent)))
                throw error;
            await page.evaluate(() => { location.hash = "#/feed/cricket"; });
            await page.locator(`main tbody tr:nth-child(${row}) a`).click();
        }
    }
    assert.deepEqual(await page.$$eval(`[aria-label="${fancy.marketName}"] thead th`, (heads) => heads.map((one) => one.textContent)),
        ["Selection", "Yes line, price", "No line, price", "Status"]);
    // Byte for byte what a customer gets, of one and the same moment.
    const [sport, event] = new URL(page.url()).hash.split("/").slice(2);
    await eventually(async () => await (await asCustomer(`/${sport}/events/${event}`, given.key)).text()
        === await page.$eval("pre", (bytes) => bytes.textContent));
    await page.select("main select", await page.evaluate(() => [...document.querySelectorAll("main select option")]
        .find((option) => option.textContent === "Closed Account").value));
    await page.waitForFunction(() => document.querySelector("pre").textContent.includes("ip_not_allowed"));
});

walk("casino", async () => {
    await press("Casino", "link");
    await title("Casino");
    await seen("Dune Studio");
    await write("Search games by name or id", "anubis", "searchbox");
    await rows(2); // a provider and the game
    await press("Anubis Falls", "link");
    await title("Anubis Falls");
    await press("Disable");
    await inDialog("Disable");
    await press("Enable");
    await seen("is enabled");
});

walk("provider", async () => {
    await visit("#/casino/providers/dune-studio");
    await title("Dune Studio");
    await press("Edit", "link");
    await title("Edit Dune Studio");
    await write("Return address", "nonsense");
    await press("Save");
    await wrongAt("Return address");
    await write("Return address", "https://example.org/lobby");
    await press("Save");
    await title("Dune Studio");
    await seen("Saved");
    await press("Launch");
    await seen("the game, in demo mode");
    await press("Add a secret");
    const secret = await inDialog("I have kept it");
    assert.match(secret, /^[0-9A-Za-z]{43}$/);
    await press("Retire");
    await inDialog("Retire");
    await seen("is retired");
    assert.ok(!(await page.content()).includes(secret));
});

walk("provider_disabled", async () => {
    await press("Disable");
    await inDialog("Disable");
    await seen("is disabled");
    await press("Enable");
    await seen("is enabled");
});

walk("provider_added", async () => {
    await press("Casino", "link");
    await press("Add a provider", "link");
    await title("Add a provider");
    await write("Id", "oasis");
    await write("Name", "Oasis");
    await write("Launch address this or the endpoint", "nonsense");
    await press("Add");
    await wrongAt("Launch address");
    await look("provider_refused");
    await write("Launch address this or the endpoint", "https://oasis.example/");
    await press("Add");
    await inDialog("I have kept it");
    await title("Oasis");
});

walk("import", async () => {
    await visit("#/casino/import");
    await title("Import games");
    await write("Or written here", "[\n  {\"id\": \"new-game\",\n]");
    await press("Import");
    await page.waitForSelector("[role=alert] p");
    await look("import_refused");
    const game = { id: "new-game", name: "New Game", provider: "dune-studio", category: "slots", features: [], rtp_bps: null, volatility: null,
        thumbnail_url: null, demo: true, currencies: ["EUR"], languages: ["en"], devices: ["desktop"] };
    await page.$eval("textarea", (field, text) => { field.value = text; }, JSON.stringify([game]));
    await press("Import");
    await seen("1 added");
});

walk("players", async () => {
    await press("Players", "link");
    await title("Players");
    // A list by default, with customers by name; one box takes whatever somebody has of a player.
    await seen("Demo Sportsbook", "main tbody");
    const search = "Beginning of the reference, or an id";
    await write(search, "nobody has this", "searchbox");
    await seen("Nothing has");
    const launch = (await page.evaluate(async (id) => (await fetch(`/admin/v1/players/${id}`)).json(), given.player.id)).launches[0];
    for (const known of [launch.launch_id, launch.provider_player_id, given.player.id, given.player.reference.toUpperCase()]) {
        await write(search, known, "searchbox");
        await page.waitForFunction((q, name) => location.hash === `#/players?q=${q}` && document.querySelectorAll("main tbody tr").length === 1
            && document.querySelector("main tbody").textContent.includes(name), {}, encodeURIComponent(known), given.player.reference);
    }
    await seen("1 in all", "main");
    await press(given.player.reference, "link");
    await title(`Player ${given.player.reference}`);
});

const statement = (of) => page.$$eval("figure + div tbody tr.opens", (lines, at) => lines.map((line) => line.children[at].textContent.trim()), of);

walk("player", async () => {
    await page.waitForSelector("figure + div tbody tr.opens");
    // A bet and its win are one row; the newest stands first, and ends the curve.
    assert.deepEqual((await statement(2)).slice(0, 2), ["Bet and win stake 2.00, won 3.50", "Transfer in"]);
    assert.equal((await statement(3))[0], "anubis-falls");
    assert.equal((await statement(4))[0], "+1.50");
    assert.equal((await statement(2)).length, 9);
    await seen("10 entries in all", "main");
    const [balance] = await statement(5);
    await page.waitForFunction((last) => document.querySelector("figure .reading b").textContent === last, {}, balance);
    await page.locator("figure summary").click();
    await page.waitForSelector("figure tbody tr");
    // The row opens by keyboard; its ids are copied whole.
    await page.focus("button.open");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelectorAll("tr.details .entry").length === 2);
    assert.deepEqual(await page.$$eval("tr.details dt:first-child", (names) => names.slice(0, 1).map((one) => one.textContent)), ["DEBIT"]);
    await browser.defaultBrowserContext().overridePermissions(origin, ["clipboard-read", "clipboard-write", "clipboard-sanitized-write"]);
    await page.click("tr.details .copy");
    await page.waitForSelector("tr.details .copy.done");
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "bet-1");
    // It moves by itself, and what is open stays open.
    const moved = await fetch(`${given.api}/casino/wallet`, { method: "POST", headers: { "X-Api-Key": given.key, "Content-Type": "application/json" },
        body: JSON.stringify({ operation: "CREDIT", player_id: given.player.id, transaction_id: "live-1", amount_minor: 777, currency: "EUR" }) });
    assert.equal(moved.status, 200);
    await seen("+7.77", "main");
    await seen("11 entries in all", "main");
    assert.equal((await page.$$("tr.details .entry")).length, 2);
    await press("Block");
    await inDialog("Block");
    await page.waitForSelector("[aria-label='Blocks in force'] tbody tr");
    await look("player_blocked");
    await press("Unblock");
    await page.locator("dialog[open] button::-p-text(Unblock)").click();
    await wrongAt("Reason");
    await page.type("dialog[open] input[name=reason]", "blocked by mistake");
    await inDialog("Unblock");
    await seen(`The block of ${given.player.id} is lifted`);
    for (const [word, state, button] of [["block", "blocked", "Change the block"], ["unblock", "may play", "Block"]]) { // by somebody else
        execFileSync(given.program, ["player", word, given.player.id, "-c", given.config, "--reason", "for the walk", ...(word === "unblock" ? ["--early"] : [])]);
        await page.waitForFunction((wanted) => document.querySelector("main .title .badge").textContent === wanted, {}, state);
        await page.waitForSelector(named("button", button));
        assert.equal(await page.$("[aria-label='Blocks in force']") !== null, word === "block");
    }
});

/** Two providers may use one transaction id: a win belongs to the bet of its own. */
walk("player_of_two_providers", async () => {
    const { items } = await page.evaluate(async (id) => (await fetch(`/admin/v1/players/${id}/statement`)).json(), given.player.id);
    const entry = (sequence, operation, provider, more) => ({ ...items[0], sequence, operation, provider, transaction_id: "same", round_id: null, game_id: null,
        reference_transaction_id: null, movement_minor: operation === "DEBIT" ? -100 : 300, ...more });
    const answer = (request) => (request.url().includes("/statement") ? request.respond({ contentType: "application/json", body: JSON.stringify({ next: null,
        items: [entry(3, "CREDIT", "dune-studio", { transaction_id: "win", reference_transaction_id: "same" }), entry(2, "DEBIT", "oasis", { round_id: "b" }),
            entry(1, "DEBIT", "dune-studio", { round_id: "a" })] }) }) : request.continue());
    await page.setRequestInterception(true);
    page.on("request", answer);
    await visit("#/health");
    await title("Health");
    await visit(`#/players/${given.player.id}`);
    await page.waitForSelector("figure + div tbody tr.opens");
    assert.deepEqual(await statement(2), ["Bet and win stake 1.00, won 3.00", "Bet"]);
    page.off("request", answer);
    await page.setRequestInterception(false);
});

/** Rows of the table of that caption, as texts of their cells. */
const cells = (caption) => page.evaluate((of) => [...document.querySelectorAll("main table")].find((one) => one.caption.textContent === of)
    ?.querySelectorAll("tr").values().map((row) => [...row.cells].map((cell) => cell.textContent)).toArray() ?? [], caption);
const minor = (text) => Number(text.replaceAll(/[^0-9−]/g, "").replace("−", "-"));
const told = (...options) => JSON.parse(execFileSync(given.program, ["wallet", "report", "-c", given.config, "--json", ...options]));

walk("what_a_customer_sees", async () => {
    await visit(`#/customers/${given.player.customer}`);
    await press("Look");
    await seen("\"connections_max\"", "main pre");
    await page.select("select[name=what]", "players");
    await press("Look");
    await seen("must be given, or player_id", "form[aria-label='What it sees']");
    await write("Parameters", `reference=${given.player.reference}`);
    await press("Look");
    await seen(given.player.id, "main pre");
    await write("Parameters", `reference=${given.player.reference}&reference=other`);
    await press("Look");
    await seen("400 invalid_request: The parameter reference is given twice.", "form[aria-label='What it sees']");
    assert.equal(await page.$("main pre"), null);
});

walk("money", async () => {
    await visit(`#/customers/${given.player.customer}`);
    await press("Money of the last 14 days", "link");
    await title("Money");
    await page.waitForFunction(() => document.querySelectorAll("main table").length >= 5);
    assert.match(page.url(), new RegExp(`customer=${given.player.customer}`));
    await press("of all", "link");
    await page.waitForFunction(() => !location.hash.includes("customer=") && document.querySelectorAll("main table").length >= 5);
    const [total] = told().totals;
    const [[, , ...labels], [, currency, ...figures]] = await cells("All by currency");
    const shown = Object.fromEntries(labels.map((label, at) => [label, minor(figures[at])]));
    assert.deepEqual([currency, shown], [total.currency, { Staked: total.stakes_minor, Won: total.wins_minor, "Paid in": total.transfers_in_minor,
        "Paid out": total.transfers_out_minor, Result: total.result_minor, Entries: total.entries }]);
    for (const line of told().lines.filter((one) => one.game_id !== null)) {
        assert.deepEqual((await cells("By game")).find(([game]) => game === line.game_id).slice(2).map(minor).slice(0, 2), [line.stakes_minor, line.wins_minor]);
    }
    await page.waitForSelector("figure svg");
});

walk("money_entries", async () => {
    await page.evaluate(() => document.querySelector("main td a[title^='Paid in']").click());
    await title("Entries");
    await page.waitForSelector("main tbody tr");
    const paid = (await cells("Entries, as they were made")).slice(1).map(([, , amount]) => minor(amount.replace("+", "")));
    assert.equal(paid.reduce((sum, one) => sum + one, 0), told().totals[0].transfers_in_minor);
    await look("money_entries_paid_in");
    await page.select(".controls select", "stake");
    await page.waitForFunction(() => location.hash.includes("figure=stake") && !document.querySelector("main tbody").textContent.includes("CREDIT"));
    await press("Money", "link");
    await title("Money");
});

const rename = (name) => execFileSync(given.program, ["customer", "set", given.player.customer, "--name", name, "-c", given.config]);

walk("money_download", async () => {
    const session = await page.createCDPSession();
    await session.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: given.downloads });
    rename("Demo; Sportsbook"); // with what some spreadsheets take for the end of a column
    await page.reload();
    await page.waitForSelector("main table");
    await press("Download as CSV");
    let text = "";
    await eventually(() => {
        const [name] = readdirSync(given.downloads).filter((one) => /^money-.*[.]csv$/.test(one));
        text = name ? readFileSync(`${given.downloads}/${name}`, "utf8") : "";
        return text.endsWith("\r\n");
    });
    const [head, ...lines] = text.trim().split("\r\n").map((line) => line.split(","));
    const column = (name) => lines.filter(([day]) => day === "").map((line) => minor(line[head.indexOf(name)].replace("-", "−")));
    const sum = (name) => column(name).reduce((all, one) => all + one, 0);
    assert.deepEqual([sum("staked"), sum("result"), sum("entries")], ["stakes_minor", "result_minor", "entries"].map((name) => told().totals[0][name]));
    assert.ok(lines.every((line) => line[head.indexOf("customer_name")] === "\"Demo; Sportsbook\""));
    rename("Demo Sportsbook");
    await page.reload();
    await page.waitForSelector("main table");
    await page.select(".controls select", "yesterday");
    await seen("No money was moved in these days.");
});

walk("ledger", async () => {
    await press("Ledger", "link");
    await title("Ledger");
    await seen("It was never verified.");
    await press("Verify now");
    await page.waitForFunction(() => document.querySelector("main [aria-live] .badge")?.textContent === "sound");
    await rows(1);
});

walk("ledger_broken", async () => {
    const ledger = await page.evaluate(async () => (await fetch("/admin/v1/ledger")).json());
    const message = `the ledger is broken: player ${given.player.id}, entry 3: its hash`;
    Object.assign(ledger.run, { state: "broken", message, player_id: given.player.id, sequence: 3 });
    Object.assign(ledger.verified.whole, { sound: false, reason: message });
    const answer = (request) => (request.url().endsWith("/admin/v1/ledger")
        ? request.respond({ contentType: "application/json", body: JSON.stringify(ledger) }) : request.continue());
    await page.setRequestInterception(true);
    page.on("request", answer);
    await press("Overview", "link");
    await title("Overview");
    await seen("The ledger is broken", ".notice.bad");
    await look("overview_broken");
    await press(message.replace("the", "The"), "link");
    await title("Ledger");
    await seen("Do not repair them by hand");
    await look("ledger_broken_page");
    await press(`${given.player.id}, entry 3`, "link");
    await title(`Player ${given.player.reference}`);
    page.off("request", answer);
    await page.setRequestInterception(false);
});

walk("audit", async () => {
    await press("Audit", "link");
    await title("Audit");
    await seen("127.0.0.77", "main tbody");
    // Times are read as times, and what was done as words.
    const text = await page.$eval("main", (main) => main.textContent);
    assert.doesNotMatch(text, /[a-z]_ms|[a-z] ms\b|[0-9]{13}|PATCH|POST|PUT|DELETE/);
    assert.match(text, /unblocked/);
    await page.waitForFunction(() => document.querySelectorAll("main tbody tr").length === 50);
    await page.evaluate(() => scrollTo(0, 600)); // the head of a table stays below the page's
    await page.waitForFunction(() => scrollY > 0
        && Math.abs(document.querySelector("main thead th").getBoundingClientRect().top - document.querySelector("header").getBoundingClientRect().bottom) <= 1);
    await page.select(".controls select", "key");
    await page.waitForFunction(() => location.hash === "#/audit?kind=key" && [...document.querySelectorAll("main tbody tr")].every((row) => row.cells[3].textContent.startsWith("key ")));
    await page.select(".controls select", "");
    await write("Object's id", given.player.id, "searchbox");
    await page.waitForFunction((id) => [...document.querySelectorAll("main tbody tr")].length >= 2
        && [...document.querySelectorAll("main tbody tr")].every((row) => row.textContent.includes(id)), {}, given.player.id);
});

walk("health", async () => {
    await press("Health", "link");
    await title("Health");
    await seen("Platform store", "main");
    await seen("Up for", "main");
    await seen(String(given.pid), "main");
    await seen("% free", "main");
    await seen("no HTTPS here", "main");
});

walk("settings", async () => {
    await press("Settings", "link");
    await title("Settings");
    await seen("[platform]");
});

walk("rounds", async () => {
    await visit("#/casino/providers/dune-studio");
    await press("that stay open", "link");
    await title("Rounds");
    await page.waitForSelector(".list .empty, .list tbody tr");
    await page.select(".controls select", "all");
    await page.waitForFunction(() => [...document.querySelectorAll("main tbody tr")].some((row) => row.textContent.includes("settled")));
    assert.match(page.url(), /provider=dune-studio&state=all/);
    await look("rounds");
    // The address holds the filter: the way back from a player leads to the same rows.
    await page.click("main tbody tr a[href^='#/players/']");
    await page.waitForFunction(() => location.hash.startsWith("#/players/"));
    await page.goBack();
    await page.waitForFunction(() => location.hash === "#/rounds?provider=dune-studio&state=all" && document.querySelector(".controls select")?.value === "all"
        && [...document.querySelectorAll("main tbody tr")].some((row) => row.textContent.includes("settled")));
    // A player's statement, by kind and day; from there to its rounds, and another day has none.
    await visit(`#/players/${given.player.id}`);
    await page.waitForSelector("figure + div tbody tr.opens");
    await page.select(".controls select", "DEBIT");
    await page.waitForFunction((id) => location.hash === `#/players/${id}?kind=DEBIT` && [...document.querySelectorAll("figure + div tbody tr.opens")]
        .every((row) => ["Bet", "Transfer out"].includes(row.children[2].textContent.trim())), {}, given.player.id);
    await visit(`#/players/${given.player.id}?kind=DEBIT&to=2020-01-01`);
    await seen("No entry is like that.");
    await visit(`#/players/${given.player.id}`);
    await press("Rounds played", "link");
    await page.waitForFunction((id) => location.hash === `#/rounds?player=${id}&state=all`, {}, given.player.id);
    await seen("r1", "main tbody");
    await visit(`#/rounds?player=${given.player.id}&state=all&to=2020-01-01`);
    await seen("No round of these days");
    assert.deepEqual(await page.$$eval(".controls input[type=date]", (days) => days.map((day) => day.value)), ["", "2020-01-01"]);
});

walk("operators", async () => {
    await press("Operators", "link");
    await title("Operators");
    await page.locator("::-p-text(Add an operator)").click();
    await write("Name", "walker");
    await press("Add");
    const link = await inDialog("I have kept it");
    const owner = page;
    page = await open(await browser.createBrowserContext());
    await page.goto(link);
    await title("Overview");
    assert.equal(await page.$("nav a[href='#/operators']"), null);
    await visit("#/customers");
    await press("Weekend Picks", "link");
    await title("Weekend Picks");
    assert.equal(await page.$(named("button", "Disable")), null);
    assert.equal(await page.$("main form:not([aria-label='What it sees'])"), null);
    assert.equal(await page.$(named("link", "Edit")), null);
    await look("reader");
    const reader = page;
    page = owner;
    await page.reload();
    await press("End");
    await seen("The session is ended");
    page = reader;
    await visit("#/audit");
    await seen("You sign in with a link");
    await page.close();
    page = owner;
});

walk("role_changed", async () => {
    await page.waitForSelector("main tbody select");
    const role = () => page.$eval("main tbody select", (one) => one.value);
    await page.select("main tbody select", "owner");
    await inDialog("Cancel");
    await page.waitForFunction(() => document.querySelector("main tbody select")?.value === "reader");
    await page.select("main tbody select", "operator");
    await inDialog("Change the role");
    await seen("walker is changed.");
    await eventually(async () => await role() === "operator");
});

walk("operator_removed", async () => {
    await press("Remove");
    await inDialog("Remove");
    await seen("walker is removed");
});

walk("token", async () => {
    await page.locator("summary::-p-text(Make a token)").click();
    await write("Name of the token", "script");
    await write("Only from", "127.0.0.0/8");
    await press("Make");
    const token = await inDialog("I have kept it");
    const call = () => fetch(`${origin}/admin/v1/session`, { headers: { Authorization: `Bearer ${token}` } });
    assert.equal((await (await call()).json()).name, "script");
    await press("Revoke");
    await inDialog("Revoke");
    await seen("The token script is revoked");
    assert.equal((await call()).status, 401);
});

/** Each dialog names its object, and goes with its page: back, and forward again, no dialog asks about another object. */
walk("dialogs_go_with_their_page", async () => {
    const player = `#/players/${given.player.id}`;
    await page.evaluate(async (id) => fetch(`/admin/v1/blocks/${id}`, { method: "PATCH", headers: { "Content-Type": "application/json" },
        body: '{"blocked": true, "reason": "for the walk"}' }), given.player.id);
    const dialogs = [
        ["#/customers/" + given.player.customer, () => press("Disable"), "Demo Sportsbook"],
        ["#/casino/providers/dune-studio", () => press("Disable"), "Dune Studio"],
        ["#/casino/providers/dune-studio", () => press("Add a secret"), "Dune Studio"],
        ["#/casino/providers/dune-studio", () => press("Retire"), "Retire "],
        ["#/addresses/127.0.0.2", () => press("Remove"), "127.0.0.2"],
        [player, () => press("Change the block"), given.player.reference],
        [player, () => press("Unblock"), given.player.reference],
        ["#/customers", async () => { await page.locator("h1").click(); await page.keyboard.press("?"); }, "Keys"],
        ["#/customers/" + given.player.customer, async () => {
            await page.locator("::-p-text(Issue a key)").click();
            await press("Issue");
        }, "Demo Sportsbook"],
    ];
    const none = () => page.waitForFunction(() => document.querySelector("dialog") === null);
    for (const [hash, act, heading] of dialogs) {
        await visit("#/health");
        await title("Health");
        await visit(hash);
        await page.waitForFunction(() => document.querySelector("h1")?.textContent !== "Health");
        await act();
        await page.waitForSelector("dialog[open]");
        await seen(heading, "dialog h2");
        await page.goBack();
        await title("Health");
        await none();
        await page.goForward();
        await page.waitForFunction(() => document.querySelector("h1")?.textContent !== "Health");
        await none();
    }
    await page.evaluate(async (id) => fetch(`/admin/v1/blocks/${id}`, { method: "PATCH", headers: { "Content-Type": "application/json" },
        body: '{"blocked": false, "early": true, "reason": "the walk is over"}' }), given.player.id);
});

walk("keyboard", async () => {
    await page.locator("h1").click();
    await page.keyboard.type("gc");
    await title("Customers");
    await page.waitForSelector("main tbody tr");
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    const name = await page.evaluate(() => document.activeElement.textContent);
    await page.keyboard.press("Enter");
    await title(name);
    await page.keyboard.type("gc");
    await title("Customers");
    await page.waitForSelector("[data-search]");
    await page.keyboard.press("/");
    await page.waitForFunction(() => document.activeElement.matches("[data-search]"));
    await page.locator("h1").click();
    await page.keyboard.press("?");
    await inDialog("Close");
});

const EVERY = ["/", "/customers", "/customers/new", `/customers/${given.player.customer}`, `/customers/${given.player.customer}/edit`,
    "/addresses", "/addresses/127.0.0.2", "/addresses/127.0.0.2/edit", "/feed", "/feed/football", "/feed/cricket/34000001",
    "/casino", "/casino/games/anubis-falls", "/casino/providers/dune-studio", "/casino/providers/dune-studio/edit", "/casino/providers/new", "/casino/import", "/players",
    `/players/${given.player.id}`, "/money", `/money/entries?customer=${given.player.customer}`, "/rounds", "/ledger", "/audit", "/health", "/settings", "/operators"];

// The themes differ in nothing but colours.
const OF_COLOURS = ["color-contrast", "link-in-text-block"];

/** Words of tables, not ids, which stand in two lines. */
function brokenWords() {
    const broken = [];
    const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
    const range = document.createRange();
    for (let text = texts.nextNode(); text !== null; text = texts.nextNode()) {
        for (const { 0: word, index } of text.parentElement.closest("th, td") === null ? [] : text.data.matchAll(/(?<![^\s(“])[A-Za-z]{2,20}(?![^\s.,:;)])/g)) {
            range.setStart(text, index);
            range.setEnd(text, index + word.length);
            if (new Set([...range.getClientRects()].map((one) => Math.round(one.top))).size > 1) {
                broken.push(word);
            }
        }
    }
    return broken;
}

/** Every page, at a width and in a theme; in the dark one it is looked at as to colours. */
async function everyPage(prefix, { width, phone, theme }) {
    await page.setViewport({ width, height: phone ? 844 : 900, isMobile: phone, hasTouch: phone });
    await page.emulateMediaFeatures([STILL, { name: "prefers-color-scheme", value: theme }]);
    for (const path of EVERY) {
        await visit(`#${path}`);
        await page.waitForFunction((to) => location.hash.startsWith(to) && document.querySelector("h1")?.textContent !== "…"
            && !document.querySelector("main").textContent.includes("Loading…"), {}, `#${path}`);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= width, `${path} is wider than the window`);
        await page.waitForFunction(() => document.querySelector(".scroll.wide, .scroll") === null
            || [...document.querySelectorAll(".scroll")].every((one) => one.classList.contains("wide") === one.scrollWidth > one.clientWidth + 1));
        assert.deepEqual(await page.evaluate(brokenWords), [], `${path} breaks words`);
        await look(`${prefix}${path.replaceAll("/", "_")}`, theme === "dark" ? OF_COLOURS : undefined);
    }
}

walk("phone", async () => {
    await page.setViewport({ width: 390, height: 844, isMobile: true, hasTouch: true });
    await press("Menu");
    await press("Casino", "link");
    await title("Casino");
    await visit(`#/players/${given.player.id}`);
    await page.waitForFunction(() => document.querySelector("figure + div thead th:nth-child(2)")?.textContent === "Amount");
    const canvas = await (await page.$("figure .canvas")).boundingBox();
    await page.touchscreen.tap(canvas.x + canvas.width / 2, canvas.y + 40);
    await page.waitForSelector("figure .cursor");
    rename("the longest name that there is ".padEnd(128, "x"));
    await page.reload();
    await everyPage("phone", { width: 390, phone: true, theme: "light" });
    rename("Demo Sportsbook");
    await page.reload();
});

walk("phone_feed", async () => {
    await visit("#/feed");
    await title("Feed");
    await page.waitForFunction(() => document.querySelectorAll("main .badge").length === 5);
    // What stands further right is told of.
    await page.waitForSelector(".scroll.wide");
    assert.match(await page.$eval(".scroll.wide", (place) => getComputedStyle(place, "::after").content), /scrolls sideways/);
    assert.ok(await page.$$eval("main .badge", (states) => Math.max(...states.map((one) => one.getBoundingClientRect().right))) <= 390);
});

walk("phone_dark", () => everyPage("phone_dark", { width: 390, phone: true, theme: "dark" }));
walk("wide", () => everyPage("wide", { width: 1440, phone: false, theme: "light" }));
walk("wide_dark", async () => {
    await everyPage("wide_dark", { width: 1440, phone: false, theme: "dark" });
    await page.setViewport({ width: 1280, height: 860 });
    await page.emulateMediaFeatures([STILL]);
});

walk("no_such_page", async () => {
    for (const nowhere of ["#/nowhere", "#/customers/%zz"]) {
        await visit("#/customers");
        await title("Customers");
        await visit(nowhere);
        await title("No such page");
    }
    // What stands for a name in an address leads to nothing but a record of that kind.
    await visit("#/customers/..%2Foperators%2Fdemo");
    await title("Not found");
});

walk("sign_out_fails", async () => {
    assert.deepEqual(complaints, []);
    await page.setOfflineMode(true);
    await press("Sign out");
    await seen("You may still be signed in. No answer came.");
    await page.setOfflineMode(false);
    await visit("#/customers");
    await title("Customers");
    await seen("All stores answer");
    complaints.length = 0; // the browser's own, of what it could not reach
});

walk("session_ends_soon", async () => {
    const session = await page.evaluate(async () => (await fetch("/admin/v1/session")).json());
    const answer = (request) => (request.url().endsWith("/admin/v1/session") ? request.respond({ contentType: "application/json",
        body: JSON.stringify({ ...session, expires_at: new Date(Date.now() + 603_000).toISOString() }) }) : request.continue());
    await page.setRequestInterception(true);
    page.on("request", answer);
    await page.reload();
    await title("Customers");
    await seen("Your session ends in less than 10 minutes.", "#said");
    await seen("9.9 min left", "header .who");
    page.off("request", answer);
    await page.setRequestInterception(false);
    await page.reload();
    await title("Customers");
});

walk("store_away", async () => {
    const away = { error: { code: "store_unavailable", message: "/data/platform.db: there is no such file", field: null } };
    const answer = (request) => (request.url().startsWith(`${origin}/admin/v1/`)
        ? request.respond({ status: 503, contentType: "application/json", body: JSON.stringify(away) }) : request.continue());
    await page.setRequestInterception(true);
    page.on("request", answer);
    await visit("#/health");
    await seen("croupier check", "main .notice");
    await seen("The platform store is away", "header");
    // Each is read aloud once: it is not filled again by the next look.
    await page.evaluate(() => {
        globalThis.filled = 0;
        const observer = new MutationObserver((changes) => { globalThis.filled += changes.length; });
        for (const place of ["main", "header [role=status]"]) { // and not what was said a while ago, which goes by itself
            observer.observe(document.querySelector(place), { childList: true, subtree: true });
        }
    });
    let asked = 0;
    page.on("request", (request) => { asked += request.url().endsWith("/admin/v1/health") ? 1 : 0; });
    await eventually(() => asked >= 4);
    assert.equal(await page.evaluate(() => globalThis.filled), 0);
    await look("store_away_page");
    page.off("request", answer);
    await page.setRequestInterception(false);
    await seen("All stores answer");
    await seen("Up for", "main");
    complaints.length = 0; // the browser's own, of what it was refused
});

walk("signed_out", async () => {
    await press("Sign out");
    await seen("You sign in with a link");
    await page.goBack();
    await seen("You sign in with a link");
    assert.equal(await page.evaluate(async () => (await fetch("/admin/v1/customers")).status), 401);
    for (const [width, theme] of [[1440, "light"], [1440, "dark"], [390, "light"], [390, "dark"]]) {
        await page.setViewport({ width, height: 844, isMobile: width === 390, hasTouch: width === 390 });
        await page.emulateMediaFeatures([STILL, { name: "prefers-color-scheme", value: theme }]);
        await look(`sign_in_${theme}_${width}`);
    }
});

walk("server_away", async () => {
    assert.deepEqual(complaints, []);
    await page.setOfflineMode(true);
    await page.evaluate(() => { location.hash = "#/customers"; });
    await seen("The server does not answer");
});

try {
    for (const [name, run] of steps) {
        step = name;
        const begun = Date.now();
        await run();
        await look(name);
        console.log(`${name}: ${Date.now() - begun} ms`);
    }
} catch (error) {
    console.log(`FAILED at ${step}: ${error.stack}`);
    console.log(complaints.join("\n"));
    console.log(await page.evaluate(() => document.body.innerText).catch(() => ""));
    await page.screenshot({ path: `${given.pictures}/failed.png`, fullPage: true }).catch(() => {});
    process.exitCode = 1;
} finally {
    await browser.close();
}

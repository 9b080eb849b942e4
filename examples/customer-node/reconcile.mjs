#!/usr/bin/env node
// Keeps a copy of your entries and proves its days equal to the operator's, also after a kill. README.md shows how to run it.

import { closeSync, fsyncSync, ftruncateSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const BASE = (process.env.BASE ?? "http://127.0.0.1:8080").replace(/(\/api\/v1)?\/*$/, "");
const KEY = process.env.ACCOUNT_KEY || fail("set ACCOUNT_KEY to a key with the area account (crk_…)");
const COPY = process.env.COPY ?? "entries.copy";

/** Ends the program with a sentence. */
function fail(sentence) {
  console.error(`reconcile.mjs: ${sentence}`);
  process.exit(1);
}

/** The text of an answer. Asks again while the server is busy or away. */
async function get(path) {
  for (;;) {
    let reason, pauseMs = 1000;
    try {
      const headers = { Authorization: `Bearer ${KEY}` };
      const answer = await fetch(`${BASE}/api/v1/account/${path}`, { headers, signal: AbortSignal.timeout(15000) });
      reason = await answer.text();
      if (answer.status === 200) return reason;
      if (answer.status !== 429 && answer.status < 500) fail(`${answer.status} ${reason}`);
      pauseMs = 1000 * Number(answer.headers.get("Retry-After")) || pauseMs;
    } catch (error) {
      reason = `from ${BASE}: ${error.cause?.code ?? error.cause ?? error}`;
    }
    console.error(`no answer yet (${reason}); the same again`);
    await sleep(pauseMs);
  }
}

/** Brings the copy up to now, and returns its entries. A line is a page as it came: its cursor stands or falls with its entries. */
async function copyEntries() {
  const copy = openSync(COPY, "a+");
  const bytes = readFileSync(copy);
  const whole = bytes.lastIndexOf(10) + 1;
  ftruncateSync(copy, whole); // what a kill left of a line is asked for again
  const pages = bytes.subarray(0, whole).toString().split("\n").filter(Boolean).map((line) => JSON.parse(line));
  for (let more = true; more;) {
    const cursor = pages.length ? `&cursor=${pages.at(-1).next_cursor}` : "";
    const text = await get(`entries?limit=200${cursor}`);
    const page = JSON.parse(text);
    pages.push(page);
    more = page.more;
    if (more || page.entries.length) {
      writeFileSync(copy, text + "\n"); // appends all of it
      fsyncSync(copy);
    }
  }
  closeSync(copy);
  return pages.flatMap((page) => page.entries);
}

const NOTHING = [0n, 0n, 0n, 0n, 0n]; // the sums of a day may be above 2^53

/** By day and currency: how many entries, what they took, gave, and gave and took back. */
function mine(entries) {
  const sums = {};
  for (const { created_at, currency, operation, movement_minor: moved } of entries) {
    const row = (sums[created_at.slice(0, 10)] ??= {})[currency] ??= [...NOTHING];
    row[0]++;
    row[operation === "ROLLBACK" ? (moved > 0 ? 3 : 4) : (moved < 0 ? 1 : 2)] += BigInt(Math.abs(moved));
  }
  return sums;
}

const GAVE = ["wins_minor", "promos_minor", "jackpots_minor", "adjustments_minor", "transfers_in_minor"];
const TOOK = ["stakes_minor", "transfers_out_minor"];

/** The same of a day, by currency, from the operator's totals. */
async function theirs(day) {
  const add = (row, names, before = "") => names.reduce((sum, name) => sum + BigInt(row[before + name] ?? 0), 0n);
  const text = (await get(`days?day=${day}`)).replace(/("(?:[^"\\]|\\.)*")|-?\d+/g, // each number as a string, which is not rounded
    (token, string) => string ?? `"${token}"`);
  return Object.fromEntries(JSON.parse(text).days.map((row) => [row.currency,
    [add(row, ["entries"]), add(row, TOOK), add(row, GAVE), add(row, TOOK, "rolled_back_"), add(row, GAVE, "rolled_back_")]]));
}

const DAY_MS = 24 * 60 * 60 * 1000;
const dayOf = (ms) => new Date(ms).toISOString().slice(0, 10);

const isDay = (word) => /^\d{4}-\d\d-\d\d$/.test(word) && !Number.isNaN(Date.parse(word)) && dayOf(Date.parse(word)) === word;

const words = process.argv.slice(2), today = dayOf(Date.now());
const last = words[1] ?? dayOf(Date.parse(today) - DAY_MS); // today is not over
if (words.length > 2 || !words.every(isDay) || words.length && !(words[0] <= last && last <= today)) {
  console.error("reconcile.mjs [FIRST [LAST]]: days as 2026-11-29, in their order, LAST no later than today (UTC); without it, yesterday");
  process.exit(2);
}
const sums = mine(await copyEntries());
const first = words[0] ?? Object.keys(sums).sort()[0] ?? today;
for (let day = first; day <= last; day = dayOf(Date.parse(day) + DAY_MS)) {
  const here = sums[day] ?? {}, there = await theirs(day);
  for (const currency of Object.keys({ ...here, ...there }).sort()) {
    const ours = (here[currency] ?? NOTHING).join(" "), other = (there[currency] ?? NOTHING).join(" ");
    console.log(day, currency, ours, ours === other ? "equal" : `here, but ${other} there`);
    if (ours !== other) process.exitCode = 1;
  }
}

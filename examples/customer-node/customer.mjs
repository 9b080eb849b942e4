#!/usr/bin/env node
// A customer of croupier in one file: polls odds, launches a game, and moves a player's money so
// that nothing is lost or done twice, even when this program or the server is killed in between.
// README.md shows how to run it.

import { createHash, randomUUID } from "node:crypto";
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, truncateSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import zlib from "node:zlib";

const BASE = (process.env.BASE ?? "http://127.0.0.1:8080").replace(/(\/api\/v1)?\/*$/, "");
const KEY = process.env.KEY || fail("set KEY to the key that the operator gave you (crk_…)");
const JOURNAL = process.env.JOURNAL ?? "wallet.journal";
const WAIT_S = 55; // how long a poll may wait for a change
// Zstd with a dictionary, which makes a body of the one before it and their difference. Without it, polls are answered in gzip.
const [major, minor] = process.versions.node.split(".").map(Number);
const DIFFERENCES = major > 24 || (major === 24 && minor >= 6) || (major === 22 && minor >= 19);

/** Ends the program with a sentence. */
function fail(sentence) {
  console.error(`customer.mjs: ${sentence}`);
  process.exit(1);
}

/** Ends it with the sentence of an error document. */
function refuse({ status, text }) {
  let error = {};
  try { error = JSON.parse(text); } catch { /* not croupier's */ }
  fail(error.message ? `${error.message} (${status} ${error.error})` : `the server answered ${status}: ${text}`);
}

/** Why there is no answer. */
const failure = (error) => `no answer from ${BASE}: ${error.cause?.code ?? error.cause ?? error}`;

/** How long to wait before the next attempt: Retry-After, where the answer has it. */
const pause = (answer, otherwiseMs) => sleep(1000 * Number(answer.headers?.get("Retry-After")) || otherwiseMs);

const digest = (bytes) => createHash("sha256").update(bytes).digest();

/** The body after the one before it. A difference begins with the digest of the body that it is from. */
function patched(before, difference) {
  const start = Buffer.concat([Buffer.from("5e2a4d1820000000", "hex"), digest(before)]);
  if (!difference.subarray(0, 40).equals(start)) throw new Error("a difference from another body");
  return zlib.zstdDecompressSync(difference.subarray(40), { dictionary: before });
}

/** Status, headers, body and text of an answer; throws when there is none, or it cannot be decoded. */
async function ask(method, path, body, headers = {}, timeoutSeconds = 15, before = null) {
  const answer = await fetch(BASE + path, {
    method, body, signal: AbortSignal.timeout(1000 * timeoutSeconds),
    headers: { Authorization: `Bearer ${KEY}`, "Content-Type": "application/json", ...headers },
  });
  let bytes = Buffer.from(await answer.arrayBuffer()); // fetch has undone gzip
  if (answer.headers.get("Content-Encoding") === "dcz") bytes = patched(before, bytes);
  return { status: answer.status, headers: answer.headers, bytes, text: bytes.toString() };
}

// ---- odds ------------------------------------------------------------------------------------

/** The same document with its prices as text: 1.80 stays 1.80, and no digit is lost. */
function exact(text) {
  return text.replace(/("price"\s*:\s*)(-?\d[\d.eE+-]*)/g, '$1"$2"');
}

/** The best price of each runner. */
function prices(event) {
  const found = [];
  for (const market of event.odds)
    for (const runner of market.runners ?? []) {
      const best = runner.ex?.availableToBack?.[0];
      if (best && Number(best.price) > 0)
        found.push(`${market.marketName}: ${runner.runnerName} ${best.price}`);
    }
  return found.join("\n");
}

/** Prints an event's prices, and again whenever they change. Keeps the last body, so that a change comes as the difference. */
async function poll(sport, event, changes) {
  let tag = null, before = null;
  for (let seen = 0; seen < changes;) {
    const headers = tag ? { "If-None-Match": tag, Prefer: `wait=${WAIT_S}` } : {};
    headers["Accept-Encoding"] = DIFFERENCES ? "gzip, dcz" : "gzip";
    if (DIFFERENCES && before) headers["Available-Dictionary"] = `:${digest(before).toString("base64")}:`;
    let answer;
    try {
      answer = await ask("GET", `/api/v1/${sport}/events/${event}`, undefined, headers, WAIT_S + 5, before);
    } catch (error) {
      console.error(`${failure(error)}; the same again`);
      before = null; // where the difference was damaged, the next answer is whole
      await sleep(1000);
      continue;
    }
    tag = answer.headers.get("ETag") ?? tag;
    if (answer.status === 200 && !before?.equals(answer.bytes)) {
      before = answer.bytes;
      seen++;
      console.log(prices(JSON.parse(exact(answer.text))));
    } else if (answer.status === 200 || answer.status === 304) { // no change; one that did not wait is not asked for again at once
      await sleep(answer.headers.has("Preference-Applied") ? 0 : 1000);
    } else if (answer.status === 429 || answer.status >= 500 || answer.text.includes("odds_not_found")) {
      console.error(answer.status, answer.text); // asking again tells the feed that odds are wanted
      await pause(answer, 1000);
    } else {
      refuse(answer);
    }
  }
}

// ---- the wallet ------------------------------------------------------------------------------

/** Into the journal, and on the disk before this returns. */
function note(line) {
  const journal = openSync(JOURNAL, "a");
  writeSync(journal, JSON.stringify(line) + "\n");
  fsyncSync(journal);
  closeSync(journal);
}

/** The bodies that were to be sent and have no answer yet, in their order. What a kill left of a
 * line is cut off: it was not sent, and the next one begins a line. */
function unanswered() {
  const waiting = new Map();
  if (!existsSync(JOURNAL)) return waiting;
  const bytes = readFileSync(JOURNAL);
  const whole = bytes.lastIndexOf(10) + 1;
  truncateSync(JOURNAL, whole);
  for (const text of bytes.subarray(0, whole).toString().split("\n").filter(Boolean)) {
    const line = JSON.parse(text);
    if (line.send) waiting.set(line.id, line.send);
    else waiting.delete(line.id);
  }
  return waiting;
}

// The refusals beside 409 and 422 that decide: this operation was not applied, in an earlier attempt either. player_not_found
// decides about a first attempt alone: an earlier one may have been applied with the key of another customer of yours.
const DECIDES = /"error":"(player_blocked|reference_not_found|game_not_found|invalid_request|unknown_field)"/;

/** Sends the same bytes under the same id until there is an answer, which is kept. A decline is exit code 1. first: nobody has
 * sent them yet. */
async function settle(id, body, first = false) {
  for (let pauseMs = 100; ; pauseMs = Math.min(2 * pauseMs, 10000)) {
    let answer;
    try {
      answer = await ask("POST", "/api/v1/casino/wallet", body);
    } catch (error) {
      answer = { status: 0, text: failure(error) };
    }
    if ([200, 409, 422].includes(answer.status) || DECIDES.test(answer.text) || (first && answer.text.includes('"player_not_found"'))) {
      note({ id, status: answer.status, answer: answer.text });
      console.log(answer.status, answer.text);
      if (answer.status !== 200) process.exitCode = 1;
      return;
    }
    if (answer.status >= 400 && answer.status < 500 && ![408, 429].includes(answer.status))
      refuse(answer); // of the key, the address or the HTTP: the operation stays in the journal, applied before or not
    first = false;
    console.error(`no answer yet (${answer.status} ${answer.text}); the same again`);
    await pause(answer, pauseMs);
  }
}

// A command's operation, and what it takes. A stake names its game and round, and so does its win,
// which also names the stake's transaction_id. A DEBIT that names neither game nor round is money
// out: a blocked player's is not refused.
const MONEY = ["player_id", "amount_minor", "currency"];
const PLAY = [...MONEY, "game_id", "round_id"];
const MOVES = {
  deposit: ["CREDIT", MONEY], withdraw: ["DEBIT", MONEY], bet: ["DEBIT", PLAY],
  win: ["CREDIT", [...PLAY, "reference_transaction_id"]],
};

async function move([operation, names], words) {
  const id = randomUUID();
  const fields = Object.fromEntries(names.map((name, at) => [name, words[at]]));
  const body = JSON.stringify({
    operation, transaction_id: id, ...fields, amount_minor: Number(fields.amount_minor),
  });
  note({ id, send: body });
  await settle(id, body, true);
}

const TAKES = { poll: 3, launch: 3, settle: 0, deposit: 3, withdraw: 3, bet: 5, win: 6 };

const [command, ...rest] = process.argv.slice(2);
const number = command === "poll" ? rest[2] : command in MOVES ? rest[1] : "0";
if (TAKES[command] !== rest.length || !/^[0-9]{1,13}$/.test(number)) { // the wallet takes amounts to 10^12
  console.error("customer.mjs poll SPORT EVENT CHANGES | launch GAME REFERENCE CURRENCY | " +
    "deposit|withdraw PLAYER AMOUNT_MINOR CURRENCY | bet PLAYER AMOUNT_MINOR CURRENCY GAME ROUND | " +
    "win PLAYER AMOUNT_MINOR CURRENCY GAME ROUND BET | settle; an amount is in digits: 250 is 2.50 EUR");
  process.exitCode = 2;
} else if (command === "poll") {
  await poll(rest[0], rest[1], Number(rest[2]));
} else if (command === "launch") {
  const body = JSON.stringify({ mode: "real", player_reference: rest[1], currency: rest[2] });
  const answer = await ask("POST", `/api/v1/casino/games/${rest[0]}/launch`, body).catch((error) => fail(failure(error)));
  if (answer.status !== 200) refuse(answer);
  console.log(answer.text);
} else {
  for (const [id, body] of unanswered()) await settle(id, body); // first what was left open
  if (command !== "settle") await move(MOVES[command], rest);
}

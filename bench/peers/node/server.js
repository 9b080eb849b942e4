// The event route as a team would write it with Fastify and ioredis: customers in memory, catalog and odds
// read from Redis for each request, the answer written as JSON. For bench/run.py.
//
//   node server.js REDIS-HOST REDIS-PORT CUSTOMERS-FILE      prints {"port": N} when it listens
//
// CUSTOMERS-FILE: {KEY: {"sports": [SPORT], "limit": N, "seconds": N}}.
//
// What it leaves out compared with croupier is in its favour: CIDR lists, a rate limit that instances share
// (here it is this process's), an access log, entity tags and gzip, exact numbers (a double cannot hold every
// id). Both values come with one MGET, with a deadline so long that a queue at full load does not hit it.
// Interest is written once a second and event, as croupier does it.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import Fastify from "fastify";
import Redis from "ioredis";

const [host, port, file] = process.argv.slice(2);
const SPORTS = new Set(["cricket", "football", "tennis", "horse-racing", "greyhound-racing"]);
const digestOf = (key) => createHash("sha256").update(key).digest("hex");
const customers = new Map(
  Object.entries(JSON.parse(readFileSync(file, "utf8"))).map(([key, customer]) => [
    digestOf(key),
    { sports: new Set(customer.sports), limit: customer.limit, seconds: customer.seconds, window: 0, used: 0 },
  ]),
);
const redis = new Redis({ host, port: Number(port), maxRetriesPerRequest: 0, commandTimeout: 5000 });
redis.on("error", () => {});
const noted = new Map();

const app = Fastify({ logger: false });

const refuse = (reply, status, error, message) => reply.code(status).send({ error, message });

function keyOf(request) {
  const authorization = request.headers.authorization;
  if (authorization !== undefined && /^bearer /i.test(authorization)) return authorization.slice(7).trim();
  return request.headers["x-api-key"];
}

function withinLimit(customer, now) {
  const window = Math.floor(now / 1000 / customer.seconds);
  if (customer.window !== window) {
    customer.window = window;
    customer.used = 0;
  }
  return ++customer.used <= customer.limit;
}

function noteInterest(sport, id, now) {
  const member = `${sport}:${id}`;
  if (now - (noted.get(member) ?? 0) < 1000) return;
  noted.set(member, now);
  redis.zadd(`interest:${sport}`, now, id).catch(() => {});
}

function parseArray(text) {
  const value = JSON.parse(text);
  if (!Array.isArray(value)) throw new SyntaxError("not an array");
  return value;
}

app.addHook("onRequest", async (request, reply) => {
  const key = keyOf(request);
  const customer = key === undefined ? undefined : customers.get(digestOf(key));
  if (customer === undefined) return refuse(reply, 403, "ip_not_allowed", "Client address is not allowed.");
  if (!withinLimit(customer, Date.now())) return refuse(reply, 429, "rate_limited", "Too many requests.");
  request.customer = customer;
});

app.decorateRequest("customer", null);

app.get("/api/v1/:sport/events/:id", async (request, reply) => {
  const { sport, id } = request.params;
  if (!SPORTS.has(sport)) return refuse(reply, 400, "invalid_sport", "Unsupported sport.");
  if (!/^[0-9]{1,20}$/.test(id) || /^0+$/.test(id))
    return refuse(reply, 400, "invalid_event_id", "The event id is not a positive integer.");
  if (!request.customer.sports.has(sport))
    return refuse(reply, 403, "sport_not_allowed", "This sport is not enabled for your IP.");
  let catalog, odds;
  try {
    [catalog, odds] = await redis.mget(`catalog:${sport}`, `odds:${sport}:${id}`);
  } catch {
    return refuse(reply, 503, "cache_unavailable", "The data store is unavailable.");
  }
  if (catalog === null) return refuse(reply, 503, "catalog_unavailable", "Event data not yet published.");
  try {
    const event = parseArray(catalog).find((row) => String(row.gmid) === id);
    if (event === undefined) return refuse(reply, 404, "event_not_found", "Event not found");
    noteInterest(sport, id, Date.now());
    if (odds === null) return refuse(reply, 404, "odds_not_found", "No odds are stored for this event.");
    const markets = parseArray(odds);
    delete event.providerEventId;
    delete event.feed_source;
    for (const market of markets) {
      delete market.tv;
      delete market.tvChannel;
      delete market.odd_type;
    }
    return { sport, event_id: event.gmid, event, odds: markets };
  } catch {
    return refuse(reply, 502, "malformed_upstream_data", "The stored data cannot be read.");
  }
});

await app.listen({ host: "127.0.0.1", port: 0 });
console.log(JSON.stringify({ port: app.server.address().port }));

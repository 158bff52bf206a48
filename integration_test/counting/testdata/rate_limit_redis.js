// rate-limit-redis alone, and in express-rate-limit: node rate_limit_redis.js ADDRESS CLIENT PREFIX
const express = require("express");
const { rateLimit } = require("express-rate-limit");
const { RedisStore } = require("rate-limit-redis");
const { start } = require("./scenario.js");

// serve runs an app whose GET /?key=K&status=S answers S, and returns what asks it.
async function serve(options) {
  const app = express();
  const limiter = rateLimit({ standardHeaders: "draft-6", keyGenerator: (req) => req.query.key, ...options });
  app.get("/", limiter, (req, res) => res.status(Number(req.query.status ?? 200)).send("hello"));
  const server = await new Promise((resolve) => {
    const listening = app.listen(0, "127.0.0.1", () => resolve(listening));
  });
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  const get = async (key, status = 200) => {
    const res = await fetch(`http://127.0.0.1:${server.address().port}/?key=${key}&status=${status}`);
    await res.text();
    return res;
  };
  return { get, close, limiter };
}

start(async ({ connections, prefix, say, fault, Window, atOnce }) => {
  const newStore = (c, name) => new RedisStore({ sendCommand: (...words) => c.call(...words), prefix: `${prefix}:${name}:` });
  const [c] = connections;

  const minute = new Window(60_000);
  const store = newStore(c, "store");
  await store.init({ windowMs: minute.ms });
  const hit = async (key) => {
    const { totalHits, resetTime } = await store.increment(key);
    say("increment", key, totalHits);
    minute.left(resetTime - Date.now());
  };
  const look = async (key) => {
    const { totalHits, resetTime } = await store.get(key);
    say("get", key, totalHits, resetTime > Date.now() + 1000 ? "counts down" : "has no end");
  };
  await minute.begin(() => hit("a"));
  await hit("a");
  await hit("a");
  await look("a");
  await store.decrement("a");
  await look("a");
  await hit("a");
  await hit("b");
  await c.call("SCRIPT", "FLUSH");
  await hit("b");
  await c.call("SCRIPT", "FLUSH");
  await look("b");
  await store.resetKey("a");
  await look("a");
  await store.decrement("a");
  await look("a");
  await hit("a");

  const full = await serve({ windowMs: minute.ms, limit: 3, store: newStore(c, "full") });
  const ask = async (key) => {
    const { status, headers } = await full.get(key);
    say("GET", key, status, headers.get("ratelimit-limit"), headers.get("ratelimit-remaining"), headers.has("retry-after"));
    minute.seconds(headers.get("ratelimit-reset"));
    if (status === 429) minute.seconds(headers.get("retry-after"));
  };
  await minute.begin(() => ask("a"));
  for (const key of ["a", "a", "a", "b"]) await ask(key);
  say("getKey a", (await full.limiter.getKey("a")).totalHits);
  await full.limiter.resetKey("a");
  await ask("a");
  full.close();

  const failures = newStore(c, "failures");
  const forgiving = await serve({ windowMs: minute.ms, limit: 2, store: failures, skipSuccessfulRequests: true });
  for (const status of [200, 200, 200, 500, 500, 200]) {
    const hits = Number((await failures.get("a")).totalHits) || 0;
    say("GET a, which is to answer", status, (await forgiving.get("a", status)).status);
    const counted = status === 200 && hits < 2 ? hits : hits + 1; // it takes the hit back after it has answered
    for (const asked = Date.now(); (Number((await failures.get("a")).totalHits) || 0) !== counted; ) {
      if (Date.now() > asked + 10_000) return fault(`${(await failures.get("a")).totalHits} hits, want ${counted}`);
    }
  }
  forgiving.close();

  const short = new Window(400);
  const brief = await serve({ windowMs: short.ms, limit: 1, store: newStore(c, "brief") });
  say("brief", await short.begin(async () => (await brief.get("a")).status));
  say("brief, held", await short.hold(async () => (await brief.get("a")).status));
  await short.end(`${prefix}:brief:a`);
  say("brief, again", await short.begin(async () => (await brief.get("a")).status));
  say("brief, again, held", await short.hold(async () => (await brief.get("a")).status));
  await short.end(`${prefix}:brief:a`);
  brief.close();

  const apps = await Promise.all(
    connections.map((each) => serve({ windowMs: minute.ms, limit: 50, store: newStore(each, "many") })),
  );
  await atOnce(async (i) => (await apps[i].get("a")).status === 200);
  say("getKey of many", (await apps[0].limiter.getKey("a")).totalHits);
  for (const app of apps) app.close();
});

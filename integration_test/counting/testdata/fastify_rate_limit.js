// @fastify/rate-limit with its Redis store: node fastify_rate_limit.js ADDRESS CLIENT PREFIX
const Fastify = require("fastify");
const rateLimit = require("@fastify/rate-limit");
const { start } = require("./scenario.js");

// serve makes an app with these routes, a limit for each, and returns what asks it without a socket. A request's key is in its query.
async function serve(c, nameSpace, settings, routes = {}) {
  const app = Fastify();
  const answer = async () => "hello";
  await app.register(rateLimit, { redis: c.client, nameSpace, keyGenerator: (req) => req.query.key, ...settings });
  app.get("/", answer);
  for (const [route, limit] of Object.entries(routes)) app.get(`/${route}`, { config: { rateLimit: limit } }, answer);
  const look = app.createRateLimit();
  app.get("/look", { config: { rateLimit: false } }, (req) => look(req, { increment: false }));
  app.get("/take", { config: { rateLimit: false } }, (req) => look(req));
  const get = (key, route = "") => app.inject({ url: `/${route}`, query: { key } });
  return { get, close: () => app.close() };
}

start(async ({ connections, prefix, say, Window, atOnce }) => {
  const [c] = connections;
  const minute = new Window(60_000);
  const routes = {
    tight: { max: 1, timeWindow: 3600_000 },
    banned: { max: 1, ban: 1 },
    one: { max: 2, groupId: "group" },
    backoff: { max: 1, timeWindow: minute.ms, exponentialBackoff: true },
    steadily: { max: 1, timeWindow: 3600_000, continueExceeding: true },
  };
  const app = await serve(c, `${prefix}:app-`, { max: 2, timeWindow: minute.ms }, routes);
  const ask = async (key, route = "", span = minute) => {
    const { statusCode, headers } = await app.get(key, route);
    const retry = headers["retry-after"];
    say(`GET /${route}`, key, statusCode, headers["x-ratelimit-limit"], headers["x-ratelimit-remaining"], retry !== undefined);
    span.seconds(headers["x-ratelimit-reset"]);
    if (retry !== undefined) span.seconds(retry);
  };
  await minute.begin(() => ask("a"));
  for (const key of ["a", "a", "a", "b"]) await ask(key);
  const hour = new Window(3600_000);
  await hour.begin(() => ask("a", "tight", hour));
  await ask("a", "tight", hour);
  await ask("b", "tight", hour);
  for (let i = 0; i < 4; i++) await ask("a", "banned");
  for (let i = 0; i < 3; i++) await ask("a", "one");
  await ask("a", "backoff");
  for (const times of [1, 2, 4, 8]) {
    const span = new Window(times * minute.ms);
    await span.begin(() => ask("a", "backoff", span));
  }
  for (let i = 0; i < 3; i++) await hour.begin(() => ask("a", "steadily", hour));

  for (const route of ["look", "take", "look", "take", "take", "look"]) {
    const { max, remaining, ttl, isExceeded } = (await app.get("c", route)).json();
    say(route, "c", max, remaining, isExceeded);
    if (ttl > 0) minute.left(ttl);
    else say("no window", ttl);
  }
  await app.close();

  const short = new Window(400);
  const brief = await serve(c, `${prefix}:brief-`, { max: 1, timeWindow: short.ms });
  const status = async () => (await brief.get("a")).statusCode;
  say("brief", await short.begin(status));
  say("brief, held", await short.hold(status));
  await short.end(`${prefix}:brief-a`);
  say("brief, again", await short.begin(status));
  say("brief, again, held", await short.hold(status));
  await short.end(`${prefix}:brief-a`);
  await brief.close();

  // Each call past the limit begins the window anew.
  const strict = await serve(c, `${prefix}:strict-`, { max: 1, timeWindow: short.ms, continueExceeding: true });
  const strictly = async () => (await strict.get("a")).statusCode;
  say("strict", await short.begin(strictly));
  say("strict, held", await short.hold(strictly));
  say("strict", await short.begin(strictly));
  await short.end(`${prefix}:strict-a`);
  say("strict, again", await strictly());
  await strict.close();

  const many = await Promise.all(connections.map((each) => serve(each, `${prefix}:many-`, { max: 50, timeWindow: minute.ms })));
  await atOnce(async (i) => (await many[i].get("a")).statusCode === 200);
  say("many", await c.call("GET", `${prefix}:many-a`));
  for (const each of many) await each.close();
});

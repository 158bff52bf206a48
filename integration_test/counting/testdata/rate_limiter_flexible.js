// rate-limiter-flexible with either client: node rate_limiter_flexible.js ADDRESS CLIENT PREFIX
const flexible = require("rate-limiter-flexible");
const { start } = require("./scenario.js");

start(async ({ connections, kind, prefix, say, fault, Window, atOnce }) => {
  const options = (name, more, c = connections[0]) => ({
    storeClient: c.client,
    useRedisPackage: kind === "redis",
    keyPrefix: `${prefix}:${name}`,
    points: 3,
    duration: 60,
    ...more,
  });
  const limiterOf = (...args) => new flexible.RateLimiterRedis(options(...args));

  // answer says what a call has answered, whether it was resolved or rejected, and returns the ms until the next.
  const answer = async (call, promise) => {
    const [verdict, res] = await promise.then((r) => ["yes", r], (r) => ["no", r]);
    if (res instanceof Error) throw res;
    if (res === null || typeof res === "boolean") return say(call, verdict, res);
    say(call, verdict, res.consumedPoints, "consumed,", res.remainingPoints, "remain, first", res.isFirstInDuration);
    return res.msBeforeNext;
  };

  const minute = new Window(60_000);
  const limiter = limiterOf("limiter");
  minute.left(await minute.begin(() => answer("consume a", limiter.consume("a"))));
  for (const points of [1, 1, 1, 2]) minute.left(await answer(`consume a ${points}`, limiter.consume("a", points)));
  minute.left(await minute.begin(() => answer("consume b 2", limiter.consume("b", 2))));
  minute.left(await answer("penalty b", limiter.penalty("b")));
  minute.left(await answer("penalty b 3", limiter.penalty("b", 3)));
  minute.left(await answer("consume b", limiter.consume("b")));
  minute.left(await answer("reward b 5", limiter.reward("b", 5)));
  minute.left(await answer("consume b", limiter.consume("b")));
  minute.left(await answer("get b", limiter.get("b")));
  minute.left(await minute.begin(() => answer("set b 2", limiter.set("b", 2, 60))));
  minute.left(await answer("consume b", limiter.consume("b")));
  minute.left(await answer("consume b", limiter.consume("b")));
  await answer("delete b", limiter.delete("b"));
  await answer("delete b", limiter.delete("b"));
  await answer("get b", limiter.get("b"));
  minute.left(await minute.begin(() => answer("reward c", limiter.reward("c"))));
  minute.left(await answer("consume c 4", limiter.consume("c", 4)));
  minute.left(await answer("consume c", limiter.consume("c")));

  const hour = new Window(3600_000);
  hour.left(await hour.begin(() => answer("block d", limiter.block("d", 3600))));
  hour.left(await answer("consume d", limiter.consume("d")));
  hour.left(await answer("get d", limiter.get("d")));
  hour.left(await hour.begin(() => answer("consume e for an hour", limiter.consume("e", 1, { customDuration: 3600 }))));
  hour.left(await answer("consume e", limiter.consume("e")));

  const blocking = limiterOf("blocking", { points: 1, blockDuration: 3600 });
  await answer("blocking", blocking.consume("a"));
  hour.left(await hour.begin(() => answer("blocking", blocking.consume("a"))));
  hour.left(await answer("blocking", blocking.consume("a")));
  hour.left(await answer("blocking, get", blocking.get("a")));

  const endless = limiterOf("endless", { points: 2, duration: 0 });
  for (let i = 0; i < 3; i++) say("until", await answer("endless", endless.consume("a")));
  say("until", await answer("endless, get", endless.get("a")));
  say("until", await answer("endless, block", endless.block("b", 0)));
  say("until", await answer("endless, get", endless.get("b")));
  minute.left(await minute.begin(() => answer("consume what never ended", limiterOf("endless", { points: 9 }).consume("a"))));

  const memory = limiterOf("memory", { points: 1, inMemoryBlockOnConsumed: 2, inMemoryBlockDuration: 3600 });
  await answer("memory", memory.consume("a"));
  await answer("memory", memory.consume("a"));
  await answer("memory", memory.consume("a"));
  minute.left(await answer("memory, get", memory.get("a")));

  const union = new flexible.RateLimiterUnion(limiterOf("narrow", { points: 1 }), limiterOf("wide", { points: 5 }));
  for (let i = 0; i < 2; i++) {
    const [verdict, all] = await union.consume("a").then((r) => ["yes", r], (r) => ["no", r]);
    say("union", verdict, Object.entries(all).map(([name, res]) => `${name.slice(prefix.length)} ${res.consumedPoints}`).sort());
  }
  const bursty = new flexible.BurstyRateLimiter(limiterOf("steady", { points: 1 }), limiterOf("burst", { points: 2 }));
  for (let i = 0; i < 4; i++) {
    const [verdict, res] = await bursty.consume("a").then((r) => ["yes", r], (r) => ["no", r]);
    if (res instanceof Error) throw res;
    say("bursty", verdict, res.consumedPoints, res.remainingPoints);
  }

  const steps = new flexible.RateLimiterRedisNonAtomic(options("steps", { points: 2 }));
  minute.left(await minute.begin(() => answer("in steps", steps.consume("a"))));
  for (let i = 0; i < 2; i++) minute.left(await answer("in steps", steps.consume("a")));
  minute.left(await answer("in steps, penalty", steps.penalty("a", 2)));
  minute.left(await answer("in steps, reward", steps.reward("a", 4)));
  minute.left(await answer("in steps, get", steps.get("a")));
  say("until", await answer("in steps, set", steps.set("a", 12, 0)));
  say("until", await answer("in steps, get", steps.get("a")));
  await answer("in steps, delete", steps.delete("a"));

  const second = new Window(1000); // the library has no shorter one
  const brief = limiterOf("brief", { points: 1, duration: 1 });
  const admits = async () => brief.consume("a").then(() => "yes", (res) => (second.left(res.msBeforeNext), "no"));
  say("brief", await second.begin(() => brief.consume("a").then((res) => res.consumedPoints)));
  say("brief, held", await second.hold(admits));
  await second.end(`${prefix}:brief:a`);
  say("brief, again", await second.begin(() => brief.consume("a").then((res) => res.consumedPoints)));

  const queue = new flexible.RateLimiterQueue(limiterOf("queue", { points: 2, duration: 1 }));
  say("queue", await second.begin(() => queue.removeTokens(1, "a")));
  say("queue", await queue.removeTokens(1, "a"));
  say("queue", await queue.removeTokens(1, "a"));
  if (Date.now() < second.before + second.ms - 2) fault("what waits in the queue goes before the window ends");

  const many = connections.map((c) => limiterOf("many", { points: 50 }, c));
  await atOnce((i) => many[i].consume("a").then(() => true, (res) => (res instanceof Error ? Promise.reject(res) : false)));
  await answer("get of many", many[0].get("a"));
});

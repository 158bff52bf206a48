// @nest-lab/throttler-storage-redis alone, and in an app of Nest: node throttler_storage_redis.js ADDRESS CLIENT PREFIX
require("reflect-metadata");
const { Controller, Get, Module } = require("@nestjs/common");
const { APP_GUARD, NestFactory } = require("@nestjs/core");
const { SkipThrottle, Throttle, ThrottlerGuard, ThrottlerModule } = require("@nestjs/throttler");
const { ThrottlerStorageRedisService } = require("@nest-lab/throttler-storage-redis");
const { start } = require("./scenario.js");

// decorate does to a method what decorators do in TypeScript.
function decorate(type, method, ...decorators) {
  for (const decorator of decorators) decorator(type.prototype, method, Object.getOwnPropertyDescriptor(type.prototype, method));
}

// serve runs an app of Nest with three routes, each limited in its way, and returns what asks it.
async function serve(storage, throttlers, tracker) {
  class Hello {
    plain() {
      return "hello";
    }
    tight() {
      return "hello";
    }
    free() {
      return "hello";
    }
  }
  decorate(Hello, "plain", Get("plain"));
  decorate(Hello, "tight", Get("tight"), Throttle({ default: { limit: 1, ttl: 3600_000 } }));
  decorate(Hello, "free", Get("free"), SkipThrottle({ default: true, long: true }));
  Controller()(Hello);
  class App {}
  Module({
    imports: [ThrottlerModule.forRoot({ throttlers, storage, getTracker: () => tracker })],
    controllers: [Hello],
    providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
  })(App);
  const app = await NestFactory.create(App, { logger: false });
  await app.listen(0, "127.0.0.1");
  const get = async (route) => {
    const res = await fetch(`http://127.0.0.1:${app.getHttpServer().address().port}/${route}`);
    await res.text();
    return res;
  };
  const close = () => {
    app.getHttpServer().closeAllConnections();
    return app.close();
  };
  return { get, close };
}

start(async ({ connections, prefix, say, Window, atOnce }) => {
  const [c] = connections;
  const storage = new ThrottlerStorageRedisService(c.client);
  const minute = new Window(60_000);
  const block = new Window(120_000);
  const hit = async (key, limit, name) => {
    const res = await storage.increment(`${prefix}:${key}`, minute.ms, limit, block.ms, name);
    say("increment", key, limit, name, res.totalHits, res.isBlocked);
    return res;
  };
  minute.seconds((await minute.begin(() => hit("a", 2, "first"))).timeToExpire);
  minute.seconds((await hit("a", 2, "first")).timeToExpire);
  block.seconds((await block.begin(() => hit("a", 2, "first"))).timeToBlockExpire);
  block.seconds((await hit("a", 2, "first")).timeToBlockExpire);
  minute.seconds((await hit("a", 2, "first")).timeToExpire);
  await hit("a", 2, "second");
  await hit("b", 2, "first");
  await c.call("SET", `{${prefix}:b:first}:blocked`, 1); // a block without an end is lifted
  const lifted = await minute.begin(() => hit("b", 2, "first"));
  minute.seconds(lifted.timeToExpire);
  say("lifted", lifted.timeToBlockExpire, await c.call("EXISTS", `{${prefix}:b:first}:blocked`));

  // A block that ends before the window: it begins anew, as the hits are still there.
  const short = new Window(400);
  const early = async () => (await storage.increment(`${prefix}:early`, minute.ms, 1, short.ms, "x")).isBlocked;
  say("early", await early());
  say("early", await short.begin(early));
  say("early, held", await short.hold(early));
  await short.end(`{${prefix}:early:x}:blocked`);
  say("early, again", await short.begin(early));
  await short.end(`{${prefix}:early:x}:blocked`);

  // A block as long as the window, which it outlives: then the next window begins.
  const brief = async () => {
    const res = await storage.increment(`${prefix}:brief`, short.ms, 1, short.ms, "x");
    return res.isBlocked ? "blocked" : res.totalHits;
  };
  say("brief", await brief());
  say("brief", await short.begin(brief));
  say("brief, held", await short.hold(brief));
  await short.end(`{${prefix}:brief:x}:blocked`);
  say("brief, again", await short.begin(brief));
  await short.end(`{${prefix}:brief:x}:hits`);
  say("brief, once more", await brief());

  const throttlers = [
    { name: "default", ttl: minute.ms, limit: 2, blockDuration: block.ms },
    { name: "long", ttl: 3600_000, limit: 3 },
  ];
  const app = await serve(storage, throttlers, `${prefix}:client`);
  const hour = new Window(3600_000);
  await minute.begin(() => undefined);
  await hour.begin(() => undefined);
  for (const route of ["plain", "plain", "plain", "tight", "tight", "free", "free"]) {
    const { status, headers } = await app.get(route);
    const names = ["limit", "remaining", "limit-long", "remaining-long"];
    say("GET", route, status, ...names.map((name) => headers.get(`x-ratelimit-${name}`)), headers.has("retry-after"));
    if (route === "plain" && status === 200) minute.seconds(headers.get("x-ratelimit-reset"));
    if (route !== "free" && status === 200) hour.seconds(headers.get("x-ratelimit-reset-long"));
    if (route === "plain" && status === 429) block.seconds(headers.get("retry-after"));
  }
  await app.close();

  const many = connections.map((each) => new ThrottlerStorageRedisService(each.client));
  await atOnce(async (i) => !(await many[i].increment(`${prefix}:many`, minute.ms, 50, minute.ms, "x")).isBlocked);
  say("many", (await storage.increment(`${prefix}:many`, minute.ms, 50, minute.ms, "x")).totalHits);
});

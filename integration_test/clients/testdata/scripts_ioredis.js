// Scripts by ioredis's defineCommand: node scripts_ioredis.js URL prints what it got as one JSON object.
const Redis = require("ioredis");

async function main(url) {
  const db = new Redis(url);
  db.defineCommand("throttle", { numberOfKeys: 1, lua: "return redis.call('CL.THROTTLE', KEYS[1], ARGV[1], ARGV[2], ARGV[3])" });
  const out = {};
  out.first = await db.throttle("k", 15, 30, 6000);
  out.again = (await db.throttle("k", 15, 30, 6000))[2];
  await db.script("FLUSH");
  out.flushed = (await db.throttle("k", 15, 30, 6000))[2];

  await db.script("FLUSH");
  const other = db.duplicate(); // which does not know of any script yet
  other.defineCommand("throttle", { numberOfKeys: 1, lua: "return redis.call('CL.THROTTLE', KEYS[1], ARGV[1], ARGV[2], ARGV[3])" });
  out.piped = (await other.pipeline().throttle("k", 15, 30, 6000).throttle("k", 15, 30, 6000).exec()).map(([, reply]) => reply[2]);
  out.tx = (await other.multi().throttle("k", 15, 30, 6000).throttle("k", 15, 30, 6000).exec()).map(([, reply]) => reply[2]);
  await other.quit();

  out.both = await db.eval("return {redis.call('CL.THROTTLE', KEYS[1], 1, 1, 3600)[3], {redis.call('CL.THROTTLE', KEYS[2], 15, 30, 60)[3]}}", 2, "a", "b");
  out.bool = [];
  for (let i = 0; i < 2; i++) out.bool.push(await db.eval("return redis.call('CL.THROTTLE', KEYS[1], 0, 1, 3600)[1] == 0", 1, "c"));
  out.text = await db.eval("return 'a' .. 1.5 .. ARGV[1]", 0, "\u00e9");
  out.error = await db
    .eval("if redis.call('CL.THROTTLE', KEYS[1], 0, 1, 3600)[1] == 1 then return redis.error_reply('LIMITED later') end", 1, "c")
    .catch((e) => e.message);
  const sha = await db.script("LOAD", "return 7");
  out.loaded = [sha, await db.evalsha(sha, 0), await db.script("EXISTS", sha, "f".repeat(40))];
  out.missing = await db.evalsha("f".repeat(40), 0).catch((e) => e.message.split(" ")[0]);
  await db.quit();
  console.log(JSON.stringify(out));
}

main(process.argv[2]).catch((e) => {
  console.error(e);
  process.exit(1);
});

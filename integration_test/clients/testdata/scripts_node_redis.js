// Scripts by node-redis's defineScript: node scripts_node_redis.js URL PROTOCOL prints what it got as one JSON object.
const { createClient, defineScript } = require("redis");

const throttle = defineScript({
  NUMBER_OF_KEYS: 1,
  SCRIPT: "return redis.call('CL.THROTTLE', KEYS[1], ARGV[1], ARGV[2], ARGV[3])",
  parseCommand(parser, key, ...limit) {
    parser.pushKey(key);
    parser.push(...limit.map(String));
  },
  transformReply: (reply) => reply,
});

async function main(url, protocol) {
  const db = createClient({ url, RESP: Number(protocol), scripts: { throttle } });
  db.on("error", (e) => console.error(e));
  await db.connect();
  const out = {};
  out.first = await db.throttle("k", 15, 30, 6000);
  out.again = (await db.throttle("k", 15, 30, 6000))[2];
  await db.scriptFlush();
  out.flushed = (await db.throttle("k", 15, 30, 6000))[2];

  await db.scriptFlush();
  out.piped = (await Promise.all([db.throttle("k", 15, 30, 6000), db.throttle("k", 15, 30, 6000)])).map((reply) => reply[2]);
  await db.scriptFlush();
  out.tx = (await db.multi().throttle("k", 15, 30, 6000).throttle("k", 15, 30, 6000).exec()).map((reply) => reply[2]);

  out.both = await db.eval("return {redis.call('CL.THROTTLE', KEYS[1], 1, 1, 3600)[3], {redis.call('CL.THROTTLE', KEYS[2], 15, 30, 60)[3]}}", {
    keys: ["a", "b"],
  });
  out.bool = [];
  for (let i = 0; i < 2; i++) out.bool.push(await db.eval("return redis.call('CL.THROTTLE', KEYS[1], 0, 1, 3600)[1] == 0", { keys: ["c"] }));
  out.text = await db.eval("return 'a' .. 1.5 .. ARGV[1]", { arguments: ["\u00e9"] });
  out.error = await db
    .eval("if redis.call('CL.THROTTLE', KEYS[1], 0, 1, 3600)[1] == 1 then return redis.error_reply('LIMITED later') end", { keys: ["c"] })
    .catch((e) => e.message);
  const sha = await db.scriptLoad("return 7");
  out.loaded = [sha, await db.evalSha(sha), await db.scriptExists([sha, "f".repeat(40)])];
  out.missing = await db.evalSha("f".repeat(40)).catch((e) => e.message.split(" ")[0]);
  await db.close();
  console.log(JSON.stringify(out));
}

main(process.argv[2], process.argv[3]).catch((e) => {
  console.error(e);
  process.exit(1);
});

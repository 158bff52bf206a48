// node-redis, as its users use it: node node_redis.js URL [PROTOCOL] prints what it got as one JSON object.
const { createClient } = require("redis");

async function main(url, protocol) {
  const db = createClient({ url, name: "limiter", ...(protocol && { RESP: Number(protocol) }) });
  db.on("error", (e) => console.error(e));
  await db.connect();
  const out = {};
  const call = (key, burst, period) => ["CL.THROTTLE", key, burst, "30", period];
  out.throttle = await db.sendCommand(call("k", "15", "6000"));

  const [limited, limit, remaining, retryMs, resetMs, granted, wait] = await db.sendCommand(["CL.TAKE", "take", "2/1h"]);
  out.take = [limited, limit, remaining, retryMs, resetMs, granted, wait];
  const both = ["CL.MTAKE", "2", "take", "2/1h", "other", "5/1h"];
  const [all, first, second] = await db.sendCommand(both);
  out.mtake = [...all, first[1], first[2], second[1], second[2]];
  const [[denied]] = await db.sendCommand(both);
  out.denied = [limited ? true : false, denied ? true : false];

  const calls = Array.from({ length: 100 }, () => db.sendCommand(call("piped", "49", "6000")));
  out.allowed = (await Promise.all(calls)).filter((reply) => reply[0] === 0).length;

  const tx = db.multi().addCommand(call("tx", "15", "6000")).addCommand(call("tx", "15", "6000"));
  out.tx = (await tx.exec()).map((reply) => reply[2]);

  const other = await db.duplicate().connect();
  await db.watch("tx");
  await other.sendCommand(call("tx", "15", "6000"));
  out.watch = await db.multi().ping().exec().then(() => "executed", (e) => (e.constructor.name === "WatchError" ? "refused" : String(e)));
  await other.close();

  out.error = await db.sendCommand(call("k", "x", "6000")).catch((e) => e.message);
  out.resp = Number((await db.sendCommand(["CLIENT", "INFO"])).match(/ resp=(\d)/)[1]);
  out.name = await db.clientGetName();
  out.scan = [];
  for await (const keys of db.scanIterator({ MATCH: "*", COUNT: 10 })) out.scan.push(...keys);
  out.scan.sort();
  out.ttl = await db.ttl("piped");
  out.missing = await db.get("nosuch");
  out.info = (await db.info()).includes("celld_version:");
  out.config = { ...(await db.configGet("timeout")) };
  await db.close();
  console.log(JSON.stringify(out));
}

main(process.argv[2], process.argv[3]).catch((e) => {
  console.error(e);
  process.exit(1);
});

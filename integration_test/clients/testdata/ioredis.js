// ioredis, as its users use it: node ioredis.js URL [PROTOCOL] prints what it got as one JSON object.
const Redis = require("ioredis");

async function main(url, protocol) {
  const db = new Redis(url, { connectionName: "limiter", ...(protocol && { protocol: Number(protocol) }) });
  const out = {};
  out.throttle = await db.call("CL.THROTTLE", "k", 15, 30, 6000);

  const [limited, limit, remaining, retryMs, resetMs, granted, wait] = await db.call("CL.TAKE", "take", "2/1h");
  out.take = [limited, limit, remaining, retryMs, resetMs, granted, wait];
  const [all, first, second] = await db.call("CL.MTAKE", 2, "take", "2/1h", "other", "5/1h");
  out.mtake = [...all, first[1], first[2], second[1], second[2]];
  const [[denied]] = await db.call("CL.MTAKE", 2, "take", "2/1h", "other", "5/1h");
  out.denied = [limited ? true : false, denied ? true : false];

  const pipe = db.pipeline();
  for (let i = 0; i < 100; i++) pipe.call("CL.THROTTLE", "piped", 49, 30, 6000);
  out.allowed = (await pipe.exec()).filter(([err, reply]) => !err && reply[0] === 0).length;

  const tx = db.multi().call("CL.THROTTLE", "tx", 15, 30, 6000).call("CL.THROTTLE", "tx", 15, 30, 6000);
  out.tx = (await tx.exec()).map(([, reply]) => reply[2]);

  const other = db.duplicate();
  await db.watch("tx");
  await other.call("CL.THROTTLE", "tx", 15, 30, 6000);
  out.watch = (await db.multi().ping().exec()) === null ? "refused" : "executed";
  await other.quit();

  out.error = await db.call("CL.THROTTLE", "k", "x", 30, 60).catch((e) => e.message);
  out.resp = Number((await db.client("INFO")).match(/ resp=(\d)/)[1]);
  out.name = await db.client("GETNAME");
  out.scan = [];
  for await (const keys of db.scanStream({ match: "*", count: 10 })) out.scan.push(...keys);
  out.scan.sort();
  out.ttl = await db.ttl("piped");
  out.missing = await db.get("nosuch");
  out.info = (await db.info()).includes("celld_version:");
  const [name, value] = await db.config("GET", "timeout");
  out.config = { [name]: value };
  await db.quit();
  console.log(JSON.stringify(out));
}

main(process.argv[2], process.argv[3]).catch((e) => {
  console.error(e);
  process.exit(1);
});

// node-redis with its client-side cache: node node_redis_cache.js URL prints what it got as one JSON object.
const { createClient } = require("redis");

async function main(url) {
  const db = createClient({ url, RESP: 3, clientSideCache: { ttl: 0, maxEntries: 0, evictPolicy: "LRU" } });
  const other = createClient({ url });
  for (const client of [db, other]) {
    client.on("error", (e) => console.error(e));
    await client.connect();
  }
  const out = { stale: 0 };
  for (let n = 0; n < 100; n++) {
    const [before] = await Promise.all(Array.from({ length: 5 }, () => db.get("k")));
    await other.sendCommand(["CL.THROTTLE", "k", "100000", "1", "3600"]);
    const [after, length] = await Promise.all([db.get("k"), db.strLen("k")]);
    if (after === before || after !== (await other.get("k")) || length !== 19) out.stale++;
  }
  out.tracking = Number(/tracking_clients:(\d+)/.exec(await other.info("clients"))[1]);
  out.take = await db.sendCommand(["CL.TAKE", "t", "5/1h"]);
  out.cached = db.clientSideCache.size();
  await Promise.all([db.close(), other.close()]);
  console.log(JSON.stringify(out));
}

main(process.argv[2]).catch((e) => {
  console.error(e);
  process.exit(1);
});

"""redis-py under asyncio: redis_py_asyncio.py URL PROTOCOL prints what it got as one JSON object."""

import asyncio
import json
import sys

import redis.asyncio as redis


async def main(url, protocol):
    db = redis.Redis.from_url(url, protocol=protocol, client_name="limiter", decode_responses=True)
    out = {}
    out["throttle"] = await db.execute_command("CL.THROTTLE", "k", 15, 30, 60)

    calls = [db.execute_command("CL.THROTTLE", "piped", 49, 30, 6000) for _ in range(100)]
    out["allowed"] = sum(1 for reply in await asyncio.gather(*calls) if reply[0] == 0)

    async with db.pipeline(transaction=True) as pipe:
        pipe.execute_command("CL.THROTTLE", "tx", 15, 30, 60)
        pipe.execute_command("CL.THROTTLE", "tx", 15, 30, 60)
        out["tx"] = [reply[2] for reply in await pipe.execute()]

    async with db.pipeline() as pipe:
        await pipe.watch("tx")
        await db.execute_command("CL.THROTTLE", "tx", 15, 30, 60)
        pipe.multi()
        pipe.ping()
        try:
            await pipe.execute()
            out["watch"] = "executed"
        except redis.WatchError:
            out["watch"] = "refused"

    try:
        await db.execute_command("CL.THROTTLE", "k", "x", 30, 60)
    except redis.ResponseError as e:
        out["error"] = str(e)

    out["name"] = await db.client_getname()
    out["scan"] = sorted([key async for key in db.scan_iter(match="*", count=10)])
    out["ttl"] = await db.ttl("piped")
    out["missing"] = await db.get("nosuch")
    out["info"] = "celld_version" in await db.info()
    out["config"] = await db.config_get("timeout")
    await db.aclose()
    print(json.dumps(out))


asyncio.run(main(sys.argv[1], int(sys.argv[2])))

"""redis-py under asyncio: redis_py_asyncio.py URL [PROTOCOL] prints what it got as one JSON object."""

import asyncio
import json
import sys

import redis.asyncio as redis


async def main(url, **options):
    db = redis.Redis.from_url(url, client_name="limiter", decode_responses=True, socket_timeout=180, socket_connect_timeout=180, **options)
    out = {}
    out["throttle"] = await db.execute_command("CL.THROTTLE", "k", 15, 30, 6000)

    limited, limit, remaining, retry_ms, reset_ms, granted, wait = await db.execute_command("CL.TAKE", "take", "2/1h")
    out["take"] = [limited, limit, remaining, retry_ms, reset_ms, granted, wait]
    both = ["CL.MTAKE", 2, "take", "2/1h", "other", "5/1h"]
    every, first, second = await db.execute_command(*both)
    out["mtake"] = [*every, *first[1:3], *second[1:3]]
    (denied, *_), *_ = await db.execute_command(*both)
    out["denied"] = [True if limited else False, True if denied else False]

    calls = [db.execute_command("CL.THROTTLE", "piped", 49, 30, 6000) for _ in range(100)]
    out["allowed"] = sum(1 for reply in await asyncio.gather(*calls) if reply[0] == 0)

    async with db.pipeline(transaction=True) as pipe:
        pipe.execute_command("CL.THROTTLE", "tx", 15, 30, 6000)
        pipe.execute_command("CL.THROTTLE", "tx", 15, 30, 6000)
        out["tx"] = [reply[2] for reply in await pipe.execute()]

    async with db.pipeline() as pipe:
        await pipe.watch("tx")
        await db.execute_command("CL.THROTTLE", "tx", 15, 30, 6000)
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

    out["resp"] = int((await db.client_info())["resp"])
    out["name"] = await db.client_getname()
    out["scan"] = sorted([key async for key in db.scan_iter(match="*", count=10)])
    out["ttl"] = await db.ttl("piped")
    out["missing"] = await db.get("nosuch")
    out["info"] = "celld_version" in await db.info()
    out["config"] = await db.config_get("timeout")
    await db.aclose()
    print(json.dumps(out))


asyncio.run(main(sys.argv[1], **{"protocol": int(protocol) for protocol in sys.argv[2:]}))

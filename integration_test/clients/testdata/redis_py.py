"""redis-py, as its users use it: redis_py.py URL [PROTOCOL] prints what it got as one JSON object."""

import json
import sys

import redis

url, options = sys.argv[1], {"protocol": int(protocol) for protocol in sys.argv[2:]}
db = redis.Redis.from_url(url, client_name="limiter", decode_responses=True, socket_timeout=180, socket_connect_timeout=180, **options)
out = {}
out["throttle"] = db.execute_command("CL.THROTTLE", "k", 15, 30, 6000)

limited, limit, remaining, retry_ms, reset_ms, granted, wait = db.execute_command("CL.TAKE", "take", "2/1h")
out["take"] = [limited, limit, remaining, retry_ms, reset_ms, granted, wait]
both = ["CL.MTAKE", 2, "take", "2/1h", "other", "5/1h"]
every, first, second = db.execute_command(*both)
out["mtake"] = [*every, *first[1:3], *second[1:3]]
(denied, *_), *_ = db.execute_command(*both)
out["denied"] = [True if limited else False, True if denied else False]

with db.pipeline(transaction=False) as pipe:
    for _ in range(100):
        pipe.execute_command("CL.THROTTLE", "piped", 49, 30, 6000)
    out["allowed"] = sum(1 for reply in pipe.execute() if reply[0] == 0)

with db.pipeline(transaction=True) as pipe:
    pipe.execute_command("CL.THROTTLE", "tx", 15, 30, 6000)
    pipe.execute_command("CL.THROTTLE", "tx", 15, 30, 6000)
    out["tx"] = [reply[2] for reply in pipe.execute()]

with db.pipeline() as pipe:
    pipe.watch("tx")
    db.execute_command("CL.THROTTLE", "tx", 15, 30, 6000)
    pipe.multi()
    pipe.ping()
    try:
        pipe.execute()
        out["watch"] = "executed"
    except redis.WatchError:
        out["watch"] = "refused"

try:
    db.execute_command("CL.THROTTLE", "k", "x", 30, 60)
except redis.ResponseError as e:
    out["error"] = str(e)

out["resp"] = int(db.client_info()["resp"])
out["name"] = db.client_getname()
out["scan"] = sorted(db.scan_iter(match="*", count=10))
out["ttl"] = db.ttl("piped")
out["missing"] = db.get("nosuch")
out["info"] = isinstance(db.info()["celld_version"], (str, float))
out["config"] = db.config_get("timeout")
db.close()
print(json.dumps(out))

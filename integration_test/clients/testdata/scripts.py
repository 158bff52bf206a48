"""Scripts by redis-py's register_script: scripts.py URL PROTOCOL prints what it got as one JSON object."""

import json
import sys

import redis

url, protocol = sys.argv[1], int(sys.argv[2])
db = redis.Redis.from_url(url, protocol=protocol, decode_responses=True, socket_timeout=180, socket_connect_timeout=180)
throttle = db.register_script("return redis.call('CL.THROTTLE', KEYS[1], ARGV[1], ARGV[2], ARGV[3])")
out = {}
out["first"] = throttle(keys=["k"], args=[15, 30, 6000])
out["again"] = throttle(keys=["k"], args=[15, 30, 6000])[2]
db.script_flush()
out["flushed"] = throttle(keys=["k"], args=[15, 30, 6000])[2]

db.script_flush()
with db.pipeline(transaction=False) as pipe:
    for _ in range(2):
        throttle(keys=["k"], args=[15, 30, 6000], client=pipe)
    out["piped"] = [reply[2] for reply in pipe.execute()]

db.script_flush()
with db.pipeline(transaction=True) as pipe:
    for _ in range(2):
        throttle(keys=["k"], args=[15, 30, 6000], client=pipe)
    out["tx"] = [reply[2] for reply in pipe.execute()]

out["both"] = db.eval("return {redis.call('CL.THROTTLE', KEYS[1], 1, 1, 3600)[3], {redis.call('CL.THROTTLE', KEYS[2], 15, 30, 60)[3]}}", 2, "a", "b")
out["bool"] = [db.eval("return redis.call('CL.THROTTLE', KEYS[1], 0, 1, 3600)[1] == 0", 1, "c") for _ in range(2)]
out["text"] = db.eval("return 'a' .. 1.5 .. ARGV[1]", 0, "\u00e9")
try:
    db.eval("if redis.call('CL.THROTTLE', KEYS[1], 0, 1, 3600)[1] == 1 then return redis.error_reply('LIMITED later') end", 1, "c")
except redis.ResponseError as e:
    out["error"] = str(e)
sha = db.script_load("return 7")
out["loaded"] = [sha, db.evalsha(sha, 0), [int(known) for known in db.script_exists(sha, "f" * 40)]]
try:
    db.evalsha("f" * 40, 0)
except redis.exceptions.NoScriptError:
    out["missing"] = "NOSCRIPT"
db.close()
print(json.dumps(out))

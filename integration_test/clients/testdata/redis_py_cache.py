"""redis-py with its client-side cache: redis_py_cache.py URL prints what it got as one JSON object."""

import json
import sys

import redis
from redis.cache import CacheConfig
from redis.connection import CacheProxyConnection

url = sys.argv[1]
CacheProxyConnection.MIN_ALLOWED_VERSION = "7.2.0"  # it asks for 7.4, and celld says that it is 7.2.4
db = redis.Redis.from_url(url, protocol=3, cache_config=CacheConfig(), socket_timeout=180, socket_connect_timeout=180)
other = redis.Redis.from_url(url, socket_timeout=180, socket_connect_timeout=180)
out = {"stale": 0}
for n in range(100):
    before, kept = db.get("k"), db.get("k")
    other.execute_command("CL.THROTTLE", "k", 100000, 1, 3600)
    after, length = db.get("k"), db.strlen("k")
    if after == before or after != other.get("k") or length != 19:
        out["stale"] += 1
out["tracking"] = other.info("clients")["tracking_clients"]
out["take"] = db.execute_command("CL.TAKE", "t", "5/1h")
out["cached"] = db.get_cache().size
print(json.dumps(out))

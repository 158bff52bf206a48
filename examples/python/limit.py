# Asks celld whether one more call of a key may pass, with redis-py (pip install redis).
import os

import redis

client = redis.Redis.from_url("redis://" + os.environ.get("ADDR", "127.0.0.1:6379"))

# 30 calls a minute, 15 more at once.
limited, limit, remaining, retry_after, reset_after = client.execute_command(
    "CL.THROTTLE", "user:42", 15, 30, 60, 1
)
if limited:
    print(f"try again in {retry_after} s")
else:
    print(f"allowed, {remaining} left")

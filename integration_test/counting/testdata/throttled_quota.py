"""throttled-py: its fixed and its sliding window on RedisStore, and the same by its asyncio store."""

import asyncio
import time
from unittest import mock

from throttled import RedisStore, Throttled, per_day
from throttled.asyncio import RedisStore as AsyncRedisStore
from throttled.asyncio import Throttled as AsyncThrottled

from facts import LIMIT, URL, at_once, db, decide, keys, seconds, value

DAY = 86_400
NOON = int(time.time()) // DAY * DAY + DAY // 2  # windows are days of the clock, so the clock stands still here


def at(moment):
    return mock.patch("time.time", return_value=moment)


def tell(name, result):
    decide(name, not result.limited)
    tell_state(name, result.state)


def tell_state(name, state):
    value(name, [state.limit, state.remaining])
    seconds(f"{name}, {state.remaining}, reset", state.reset_after)
    seconds(f"{name}, {state.remaining}, retry", getattr(state, "retry_after", 0))


for algorithm in ("fixed_window", "sliding_window"):
    limiter = Throttled(using=algorithm, quota=per_day(10), store=RedisStore(server=URL))
    with at(NOON):
        tell_state(algorithm + ", unused", limiter.peek("a"))
        for cost in (1, 3, 5, 2, 1, 1):
            tell(algorithm, limiter.limit("a", cost))
        tell_state(algorithm + ", full", limiter.peek("a"))
        tell(algorithm + ", nothing", limiter.limit("a", 0))
        tell(algorithm + ", another", limiter.limit("b"))
        tell(algorithm + ", too much", limiter.limit("c", 11))
        keys(algorithm)
    with at(NOON + DAY):  # of the sliding window, half of the day before still counts
        tell_state(algorithm + ", next window", limiter.peek("a"))
        for cost in (5, 1, 5, 1):
            tell(algorithm + ", next window", limiter.limit("a", cost))
        keys(algorithm + ", next window")
    with at(NOON + 3 * DAY):
        tell(algorithm + ", much later", limiter.limit("a", 10))
        tell(algorithm + ", much later", limiter.limit("a"))
    db.flushall()

    many = Throttled(using=algorithm, quota=per_day(LIMIT), store=RedisStore(server=URL))
    with at(NOON):
        at_once(algorithm, lambda: not many.limit("many").limited)
    db.flushall()

    async def by_asyncio(name):
        limiter = AsyncThrottled(using=algorithm, quota=per_day(3), store=AsyncRedisStore(server=URL))
        for _ in range(5):
            tell(name, await limiter.limit("a"))
        tell_state(name + ", full", await limiter.peek("a"))
        keys(name)
        await limiter.limiter._store._backend.get_client().aclose()

    with at(NOON):
        asyncio.run(by_asyncio("asyncio: " + algorithm))
    db.flushall()

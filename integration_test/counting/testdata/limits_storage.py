"""limits: its fixed window and its sliding window counter on RedisStorage, and the same by its asyncio storage."""

import asyncio
import math
import time

import limits
import limits.aio
from facts import LIMIT, URL, at_once, db, decide, end_windows, keys, seconds, value

storage = limits.storage.storage_from_string(URL)
value("check", storage.check())
fixed = limits.strategies.FixedWindowRateLimiter(storage)
sliding = limits.strategies.SlidingWindowCounterRateLimiter(storage)
three, ten, many = limits.parse("3/hour"), limits.parse("10/hour"), limits.parse(f"{LIMIT}/hour")


def stats(name, strategy, item, *identifiers):
    reset, remaining = strategy.get_window_stats(item, *identifiers)
    value(name, remaining)
    seconds(name, reset - time.time())


# The fixed window.
stats("fixed, unused", fixed, three, "a")
decide("fixed", *[fixed.hit(three, "a") for _ in range(5)])
stats("fixed, full", fixed, three, "a")
decide("fixed, tested", fixed.test(three, "a"), fixed.test(three, "b"), fixed.test(three, "b", cost=4))
decide("fixed, another", *[fixed.hit(three, "b", "of a group", cost=n) for n in (1, 2, 1)])
decide("fixed, too much", fixed.hit(three, "c", cost=4), fixed.hit(three, "c"))
keys("fixed")
fixed.clear(three, "a")
decide("fixed, cleared", fixed.hit(three, "a"))
end_windows()
decide("fixed, next window", *[fixed.hit(three, "a") for _ in range(4)])
value("fixed, reset", storage.reset())
decide("fixed, after reset", fixed.hit(three, "a"))
storage.reset()

# The sliding window: at the end of its window the key of the current one becomes the one before, and counts by its share.
stats("sliding, unused", sliding, ten, "a")
decide("sliding", *[sliding.hit(ten, "a") for _ in range(12)])
stats("sliding, full", sliding, ten, "a")
decide("sliding, tested", sliding.test(ten, "a"), sliding.test(ten, "b"), sliding.test(ten, "b", cost=11))
decide("sliding, another", *[sliding.hit(ten, "b", cost=n) for n in (9, 2, 1)], sliding.hit(ten, "b", cost=11))
keys("sliding")
for key in db.scan_iter():
    db.pexpire(key, int(0.58 * 3_600_000))  # 42 hundredths of the second window are over: 5 of 10 still count, for 5 minutes
stats("sliding, half", sliding, ten, "a")
keys("sliding, half")
decide("sliding, half", *[sliding.hit(ten, "a") for _ in range(7)])
decide("sliding, half, by cost", sliding.hit(ten, "b", cost=6), sliding.hit(ten, "b", cost=5))
stats("sliding, half, full", sliding, ten, "a")
keys("sliding, half, full")
sliding.clear(ten, "a")
decide("sliding, cleared", *[sliding.hit(ten, "a") for _ in range(11)])
end_windows()
decide("sliding, much later", sliding.hit(ten, "a", cost=10), sliding.hit(ten, "a"))
value("sliding, reset", storage.reset())

at_once("fixed", lambda: fixed.hit(many, "many"))
at_once("sliding", lambda: sliding.hit(many, "many"))
value("after all at once", [storage.get(many.key_for("many")), math.floor(storage.get_sliding_window(many.key_for("many"), 3600)[2])])
storage.reset()


async def by_asyncio():
    storage = limits.storage.storage_from_string("async+" + URL, implementation="redispy")
    value("asyncio: check", await storage.check())
    for name, strategy in (
        ("fixed", limits.aio.strategies.FixedWindowRateLimiter(storage)),
        ("sliding", limits.aio.strategies.SlidingWindowCounterRateLimiter(storage)),
    ):
        name = "asyncio: " + name
        decide(name, *[await strategy.hit(three, "a") for _ in range(4)])
        decide(name, await strategy.test(three, "a"), await strategy.test(three, "b"))
        reset, remaining = await strategy.get_window_stats(three, "a")
        value(name, remaining)
        seconds(name, reset - time.time())
        keys(name)
        await strategy.clear(three, "a")
        decide(name, await strategy.hit(three, "a"))
        value(name + ", reset", await storage.reset())


asyncio.run(by_asyncio())

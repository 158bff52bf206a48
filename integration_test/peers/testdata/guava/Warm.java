package com.google.common.util.concurrent;

import java.util.Random;
import java.util.concurrent.TimeUnit;

/** Prints what Guava's limiters that warm up answer under a clock that is set by hand: the time in µs, permits, the wait in µs. */
class Warm {
    static class Clock extends RateLimiter.SleepingStopwatch {
        long micros;

        protected long readMicros() {
            return micros;
        }

        protected void sleepMicrosUninterruptibly(long micros) {}
    }

    public static void main(String[] args) {
        Random random = new Random(1);
        for (int rate : new int[] {1, 2, 10, 100, 1000}) {
            for (int warmupMs : new int[] {1, 500, 5000, 60000}) {
                for (double cold : new double[] {1.25, 2, 3, 10}) {
                    System.out.println("limit " + rate + "/1s,warmup=" + warmupMs + "ms,cold=" + cold);
                    Clock clock = new Clock();
                    RateLimiter limiter = RateLimiter.create(rate, warmupMs, TimeUnit.MILLISECONDS, cold, clock);
                    for (int i = 0; i < 200; i++) {
                        int permits = random.nextInt(4) > 0 ? 1 : 1 + random.nextInt(2 * rate);
                        long wait = limiter.reserve(permits);
                        System.out.println(clock.micros + " " + permits + " " + wait);
                        boolean rests = random.nextInt(20) == 0, paced = i % 50 > 25;
                        if (rests || paced) {
                            clock.micros += wait;
                        }
                        if (rests) {
                            clock.micros += random.nextInt(2000 * warmupMs);
                        }
                    }
                }
            }
        }
    }
}

import com.google.common.util.concurrent.RateLimiter;

/** Tells how many of 20 calls at once a limiter of 5 a second lets through after it has rested, and how many of 20 more in two seconds. */
class Rate {
    public static void main(String[] args) throws Exception {
        RateLimiter limiter = RateLimiter.create(5);
        Thread.sleep(1200);
        int atOnce = 0, paced = 0;
        for (int i = 0; i < 20; i++) {
            if (limiter.tryAcquire()) atOnce++;
        }
        long start = System.nanoTime();
        for (int i = 1; i <= 20; i++) {
            while (System.nanoTime() - start < i * 100_000_000L) Thread.sleep(1);
            if (limiter.tryAcquire()) paced++;
        }
        System.out.println(atOnce + " " + paced);
    }
}

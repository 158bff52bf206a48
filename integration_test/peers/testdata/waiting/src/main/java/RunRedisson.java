import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RFencedLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RRateLimiter;
import org.redisson.api.RSemaphore;
import org.redisson.api.RateLimiterConfig;
import org.redisson.api.RateType;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

class RunRedisson {
    public static void main(String[] args) throws Exception {
        Map<String, RedissonClient> clients = new HashMap<>();
        for (String name : new String[] {"here", "there"}) {
            Config config = new Config();
            config.useSingleServer().setAddress(args[0]).setConnectionMinimumIdleSize(1).setSubscriptionConnectionMinimumIdleSize(1);
            clients.put(name, Redisson.create(config));
        }
        Program.run(call -> {
            RedissonClient client = clients.get(call[1]);
            String key = call[3];
            long[] n = new long[6];
            for (int i = 4; i < call.length; i++) {
                n[i] = call[i].matches("\\d+") ? Long.parseLong(call[i]) : 0;
            }
            RRateLimiter rate = client.getRateLimiter(key);
            RSemaphore semaphore = client.getSemaphore(key);
            RPermitExpirableSemaphore expirable = client.getPermitExpirableSemaphore(key);
            RFencedLock lock = client.getFencedLock(key);
            switch (call[2]) {
                case "trySetRate": // count, ms
                    return "" + rate.trySetRate(RateType.OVERALL, n[4], Duration.ofMillis(n[5]));
                case "trySetRatePerClient": // count, ms
                    return "" + rate.trySetRate(RateType.PER_CLIENT, n[4], Duration.ofMillis(n[5]));
                case "getConfig":
                    RateLimiterConfig config = rate.getConfig();
                    return config.getRate() + "/" + config.getRateInterval() + "ms";
                case "tryAcquire": // permits, ms
                    return "" + rate.tryAcquire(n[4], Duration.ofMillis(n[5]));
                case "acquire": // permits
                    rate.acquire(n[4]);
                    return "true";
                case "semaphore.trySetPermits":
                    return "" + semaphore.trySetPermits((int) n[4]);
                case "semaphore.tryAcquire": // ms
                    return "" + semaphore.tryAcquire(1, Duration.ofMillis(n[4]));
                case "semaphore.release":
                    semaphore.release();
                    return "true";
                case "expirable.trySetPermits":
                    return "" + expirable.trySetPermits((int) n[4]);
                case "expirable.tryAcquire": // ms to wait, ms to hold it
                    return "" + expirable.tryAcquire(n[4], n[5], TimeUnit.MILLISECONDS);
                case "expirable.updateLeaseTime": // id, ms
                    return "" + expirable.updateLeaseTime(call[4], n[5], TimeUnit.MILLISECONDS);
                case "expirable.tryRelease": // id
                    return "" + expirable.tryRelease(call[4]);
                case "lock.tryLock": // ms to wait, ms to hold it
                    return "" + lock.tryLockAndGetToken(n[4], n[5], TimeUnit.MILLISECONDS);
                case "lock.unlock":
                    try {
                        lock.unlock();
                        return "true";
                    } catch (IllegalMonitorStateException e) {
                        return "false";
                    }
            }
            throw new IllegalArgumentException(call[2]);
        });
    }
}

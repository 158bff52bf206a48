import com.google.common.util.concurrent.RateLimiter;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.DelayQueue;
import java.util.concurrent.Delayed;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/** Runs Guava's limiters and a DelayQueue. Each line is a worker's name and a call; the answer is the name and what came of it. */
class Wait {
    static final Map<String, RateLimiter> limiters = new ConcurrentHashMap<>();
    static final DelayQueue<Due> queue = new DelayQueue<>();

    record Due(long atNanos) implements Delayed {
        public long getDelay(TimeUnit unit) {
            return unit.convert(atNanos - System.nanoTime(), TimeUnit.NANOSECONDS);
        }

        public int compareTo(Delayed other) {
            return Long.compare(atNanos, ((Due) other).atNanos);
        }
    }

    static String answer(String[] call) throws Exception {
        switch (call[1]) {
            case "create": // limiter rate
                limiters.put(call[2], RateLimiter.create(Double.parseDouble(call[3])));
                return "made";
            case "warmup": // limiter rate ms
                limiters.put(call[2], RateLimiter.create(Double.parseDouble(call[3]), Long.parseLong(call[4]), TimeUnit.MILLISECONDS));
                return "made";
            case "acquire": // limiter permits
                limiters.get(call[2]).acquire(Integer.parseInt(call[3]));
                return "true";
            case "tryAcquire": // limiter permits ms
                return "" + limiters.get(call[2]).tryAcquire(Integer.parseInt(call[3]), Long.parseLong(call[4]), TimeUnit.MILLISECONDS);
            case "put": // how many, every ms
                long now = System.nanoTime();
                for (int i = 0; i < Integer.parseInt(call[2]); i++) {
                    queue.put(new Due(now + i * Long.parseLong(call[3]) * 1_000_000));
                }
                return "made";
            case "take":
                queue.take();
                return "true";
        }
        throw new IllegalArgumentException(call[1]);
    }

    public static void main(String[] args) throws Exception {
        Map<String, ExecutorService> workers = new ConcurrentHashMap<>();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String[] call = line.split(" ");
            workers.computeIfAbsent(call[0], name -> Executors.newSingleThreadExecutor()).execute(() -> {
                String answer;
                try {
                    answer = answer(call);
                } catch (Throwable e) {
                    answer = e.toString();
                }
                synchronized (System.out) {
                    System.out.println(call[0] + " " + answer);
                    System.out.flush();
                }
            });
        }
        System.exit(0);
    }
}

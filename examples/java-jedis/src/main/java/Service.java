import com.sun.net.httpserver.Headers;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicBoolean;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.util.SafeEncoder;

/**
 * A service that asks celld before it answers, with Jedis. Start it, and call it until it refuses:
 *
 * <pre>
 * go -C examples run ./try mvn -q -f java-jedis/pom.xml compile exec:java
 * curl -i http://127.0.0.1:8080/
 * </pre>
 */
public class Service {
  /** The most that a request waits for the limiter, which takes well under a millisecond on the same host. */
  private static final Duration PATIENCE = Duration.ofMillis(500);

  private final RedisClient limiter;
  private final AtomicBoolean down = new AtomicBoolean();

  Service(String url) {
    ConnectionPoolConfig pool = new ConnectionPoolConfig();
    pool.setMaxTotal(64); // at most so many calls at once
    pool.setMaxWait(PATIENCE);
    DefaultJedisClientConfig timeouts = DefaultJedisClientConfig.builder().timeoutMillis((int) PATIENCE.toMillis()).build();
    limiter = RedisClient.builder().poolConfig(pool).clientConfig(timeouts).fromURI(url).build();
  }

  @SuppressWarnings("unchecked")
  private List<Long> call(String command, String... args) {
    return (List<Long>) limiter.sendCommand(() -> SafeEncoder.encode(command), args);
  }

  /**
   * Its limit protects the service from overload. Without the limiter it lets everybody in: better a service that is busy than
   * one that is down because of its limiter.
   */
  void hello(HttpExchange request) throws IOException {
    // 10 a minute, all at once if need be. Further limits may follow: "10/1m", "100/1h". Times are milliseconds.
    List<Long> reply = ask("CL.TAKE", "ip:" + address(request), "10/1m");
    if (reply == null || admit(request, "hello", reply, 1)) {
      answer(request, 200, "hello");
    }
  }

  /** Its limit stops people from guessing passwords. Without the limiter nobody may log in. */
  void login(HttpExchange request) throws IOException {
    // 5 a minute, and 4 + 1 of them at once. Times are seconds.
    List<Long> reply = ask("CL.THROTTLE", "login:" + address(request), "4", "5", "60");
    if (reply == null) {
      answer(request, 503, "try again later");
    } else if (admit(request, "login", reply, 1000)) {
      answer(request, 200, "welcome");
    }
  }

  /**
   * Returns the reply, whose first five integers are the same for both commands: limited, limit, remaining, retry after,
   * reset after. It is null without a limiter. Logs when it loses the limiter and when the limiter is back, not at each call.
   */
  List<Long> ask(String command, String... args) {
    try {
      List<Long> reply = call(command, args);
      if (down.getAndSet(false)) {
        System.err.println("rate limiter: answers again");
      }
      return reply;
    } catch (JedisException e) {
      if (!down.getAndSet(true)) {
        System.err.println("rate limiter: " + e.getMessage());
      }
      return null;
    }
  }

  /** Tells the client what the limiter says, and answers a limited request. Both limits are for a minute. */
  static boolean admit(HttpExchange request, String name, List<Long> reply, long unitMs) throws IOException {
    boolean limited = reply.get(0) == 1;
    long limit = reply.get(1), remaining = reply.get(2), retryAfter = reply.get(3), resetAfter = reply.get(4);
    Headers headers = request.getResponseHeaders();
    headers.set("RateLimit-Policy", '"' + name + "\";q=" + limit + ";w=60");
    headers.set("RateLimit", '"' + name + "\";r=" + remaining + ";t=" + (resetAfter * unitMs + 999) / 1000);
    if (limited && retryAfter >= 0) { // -1: it will never pass, for example because a rule denies it
      headers.set("Retry-After", String.valueOf((retryAfter * unitMs + 999) / 1000));
    }
    if (limited) {
      answer(request, 429, "too many requests");
    }
    return !limited;
  }

  static void answer(HttpExchange request, int status, String text) throws IOException {
    byte[] body = (text + "\n").getBytes(StandardCharsets.UTF_8);
    request.sendResponseHeaders(status, body.length);
    try (OutputStream out = request.getResponseBody()) {
      out.write(body);
    }
  }

  /** The peer's address. Behind a proxy, use the address that the proxy reports. */
  static String address(HttpExchange request) {
    return request.getRemoteAddress().getAddress().getHostAddress();
  }

  public static void main(String[] args) throws IOException {
    Service service = new Service(System.getenv().getOrDefault("RATE_LIMITER", "redis://127.0.0.1:6379"));
    String[] listen = System.getenv().getOrDefault("LISTEN", "127.0.0.1:8080").split(":"); // in a container 0.0.0.0:8080
    HttpServer server = HttpServer.create(new InetSocketAddress(listen[0], Integer.parseInt(listen[1])), 0);
    server.setExecutor(Executors.newCachedThreadPool());
    server.createContext("/", service::hello);
    server.createContext("/login", service::login);
    server.start();
    System.out.println("listening on http://" + listen[0] + ":" + server.getAddress().getPort() + "/");
  }
}

import com.sun.net.httpserver.Headers;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.SocketOptions;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.IntegerListOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.Delay;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A service that asks celld before it answers, with Lettuce. Start it, and call it until it refuses:
 *
 * <pre>
 * go -C examples run ./try mvn -q -f java-lettuce/pom.xml compile exec:java
 * curl -i http://127.0.0.1:8080/
 * </pre>
 */
public class Service {
  /** The most that a request waits for the limiter, which takes well under a millisecond on the same host. */
  private static final Duration PATIENCE = Duration.ofMillis(500);

  private final RedisClient limiter;
  private final AtomicBoolean down = new AtomicBoolean();
  private volatile StatefulRedisConnection<String, String> connection;

  Service(String url) {
    RedisURI uri = RedisURI.create(url);
    uri.setTimeout(PATIENCE);
    // By default it waits longer and longer before it connects again, up to half a minute.
    limiter = RedisClient.create(ClientResources.builder().reconnectDelay(Delay.constant(Duration.ofSeconds(1))).build(), uri);
    limiter.setOptions(
        ClientOptions.builder()
            // Do not queue calls until the limiter is back.
            .disconnectedBehavior(ClientOptions.DisconnectedBehavior.REJECT_COMMANDS)
            .socketOptions(SocketOptions.builder().connectTimeout(PATIENCE).build())
            .build());
    Executors.newSingleThreadScheduledExecutor().scheduleWithFixedDelay(this::connect, 0, 1, TimeUnit.SECONDS);
  }

  private List<Long> call(String command, String... args) {
    if (connection == null) {
      throw new RedisException("not connected");
    }
    CommandArgs<String, String> all = new CommandArgs<>(StringCodec.UTF8);
    for (String arg : args) {
      all.add(arg);
    }
    return connection.sync().dispatch(new Name(command), new IntegerListOutput<>(StringCodec.UTF8), all);
  }

  /** Opens the one connection that all requests share. When it is lost, Lettuce opens it again. */
  private void connect() {
    if (connection == null) {
      try {
        connection = limiter.connect();
      } catch (RedisException e) {
        // The next try is a second later. Until then, calls report that there is no limiter.
      }
    }
  }

  /** The name of a command that Lettuce does not know. */
  record Name(String name) implements ProtocolKeyword {
    @Override
    public byte[] getBytes() {
      return name.getBytes(StandardCharsets.US_ASCII);
    }
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
    } catch (RedisException e) {
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

import redis.clients.jedis.RedisClient;
import redis.clients.jedis.util.SafeEncoder;

/** Calls by TLS with Jedis's defaults. */
class Secure {
  public static void main(String[] args) {
    try (RedisClient limiter = RedisClient.builder().fromURI(args[0]).build()) {
      System.out.println(limiter.sendCommand(() -> SafeEncoder.encode("CL.THROTTLE"), "java", "15", "30", "60"));
    }
  }
}

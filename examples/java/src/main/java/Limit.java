import java.util.List;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.util.SafeEncoder;

/** Asks celld whether one more call of a key may pass, with Jedis: mvn compile exec:java -Dexec.mainClass=Limit. */
public class Limit {
  public static void main(String[] args) {
    String address = System.getenv().getOrDefault("ADDR", "127.0.0.1:6379");
    try (JedisPooled client = new JedisPooled(HostAndPort.from(address))) {
      // 30 calls a minute, 15 more at once.
      List<?> reply = (List<?>) client.sendCommand(() -> SafeEncoder.encode("CL.THROTTLE"), "user:42", "15", "30", "60", "1");
      boolean limited = (Long) reply.get(0) == 1;
      System.out.println(limited ? "try again in " + reply.get(3) + " s" : "allowed, " + reply.get(2) + " left");
    }
  }
}

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisNoScriptException;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.api.sync.RedisCommands;
import java.util.List;
import org.redisson.Redisson;
import org.redisson.api.RScript;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;
import org.springframework.dao.DataAccessException;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.RedisCallback;
import org.springframework.data.redis.core.RedisOperations;
import org.springframework.data.redis.core.SessionCallback;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.core.script.DefaultRedisScript;

/** Scripts by Spring Data Redis, Lettuce or Redisson: java Scripts lettuce HOST PORT prints what each step got. */
public class Scripts {
  static final String THROTTLE = "return redis.call('CL.THROTTLE', KEYS[1], ARGV[1], ARGV[2], ARGV[3])";
  static final String REMAINING = "return redis.call('CL.THROTTLE', KEYS[1], ARGV[1], ARGV[2], ARGV[3])[3]";
  static final String FIRST = "return redis.call('CL.THROTTLE', KEYS[1], 0, 1, 3600)[1] == 0";
  static final String LIMITED = "if redis.call('CL.THROTTLE', KEYS[1], 0, 1, 3600)[1] == 1 then return redis.error_reply('LIMITED later') end";

  public static void main(String[] args) {
    int port = Integer.parseInt(args[2]);
    switch (args[0]) {
      case "lettuce" -> lettuce(args[1], port);
      case "spring" -> spring(args[1], port);
      default -> redisson(args[1], port);
    }
    System.exit(0);
  }

  static void say(String what, Object got) {
    System.out.println(what + ": " + got);
  }

  /** The first line of an error that says why, whatever it is wrapped in. */
  static String cause(Throwable e) {
    while (e.getCause() != null) e = e.getCause();
    return e.getMessage().split("\\. channel")[0];
  }

  static void lettuce(String host, int port) {
    RedisClient client = RedisClient.create("redis://" + host + ":" + port);
    RedisCommands<String, String> db = client.connect().sync();
    String[] key = {"k"};
    List<Object> first = db.eval(THROTTLE, ScriptOutputType.MULTI, key, "15", "30", "6000");
    say("first", first);
    Long remaining = db.eval(REMAINING, ScriptOutputType.INTEGER, key, "15", "30", "6000");
    say("remaining", remaining);
    db.scriptFlush();
    try {
      db.evalsha(db.digest(REMAINING), ScriptOutputType.INTEGER, key, "15", "30", "6000");
    } catch (RedisNoScriptException e) {
      say("flushed", db.<Long>evalsha(db.scriptLoad(REMAINING), ScriptOutputType.INTEGER, key, "15", "30", "6000"));
    }
    say("read only", db.<Long>evalReadOnly("return redis.call('EXISTS', KEYS[1])", ScriptOutputType.INTEGER, key));
    db.multi();
    db.evalsha(db.digest(REMAINING), ScriptOutputType.INTEGER, key, "15", "30", "6000");
    db.evalsha(db.digest(REMAINING), ScriptOutputType.INTEGER, key, "15", "30", "6000");
    say("in a transaction", db.exec().stream().toList());
    for (int i = 0; i < 2; i++) say("boolean", db.<Boolean>eval(FIRST, ScriptOutputType.BOOLEAN, "c"));
    try {
      db.eval(LIMITED, ScriptOutputType.VALUE, "c");
    } catch (RuntimeException e) {
      say("error", cause(e));
    }
    client.shutdown();
  }

  @SuppressWarnings("unchecked")
  static void spring(String host, int port) {
    LettuceConnectionFactory factory = new LettuceConnectionFactory(new RedisStandaloneConfiguration(host, port));
    factory.afterPropertiesSet();
    factory.start();
    StringRedisTemplate db = new StringRedisTemplate(factory);
    List<String> key = List.of("k");
    say("first", db.execute(new DefaultRedisScript<>(THROTTLE, List.class), key, "15", "30", "6000"));
    DefaultRedisScript<Long> remaining = new DefaultRedisScript<>(REMAINING, Long.class);
    say("remaining", db.execute(remaining, key, "15", "30", "6000"));
    db.execute((RedisCallback<Object>) c -> {
      c.scriptingCommands().scriptFlush();
      return null;
    });
    say("flushed", db.execute(remaining, key, "15", "30", "6000"));
    say("read only", db.execute(new DefaultRedisScript<>("return redis.call('EXISTS', KEYS[1])", Long.class), key));
    say("in a transaction", db.execute(new SessionCallback<List<Object>>() {
      public List<Object> execute(RedisOperations operations) throws DataAccessException {
        operations.multi();
        operations.execute(remaining, key, "15", "30", "6000");
        operations.execute(remaining, key, "15", "30", "6000");
        return operations.exec();
      }
    }));
    for (int i = 0; i < 2; i++) say("boolean", db.execute(new DefaultRedisScript<>(FIRST, Boolean.class), List.of("c")));
    try {
      db.execute(new DefaultRedisScript<>(LIMITED, String.class), List.of("c"));
    } catch (RuntimeException e) {
      say("error", cause(e));
    }
    factory.destroy();
  }

  static void redisson(String host, int port) {
    Config config = new Config();
    config.useSingleServer().setAddress("redis://" + host + ":" + port).setConnectionMinimumIdleSize(1).setConnectionPoolSize(2);
    config.setUseScriptCache(true);
    RedissonClient client = Redisson.create(config);
    RScript db = client.getScript(StringCodec.INSTANCE);
    List<Object> key = List.of("k");
    say("first", db.eval(RScript.Mode.READ_WRITE, THROTTLE, RScript.ReturnType.LIST, key, 15, 30, 6000));
    say("remaining", db.<Long>eval(RScript.Mode.READ_WRITE, REMAINING, RScript.ReturnType.LONG, key, 15, 30, 6000));
    db.scriptFlush();
    say("flushed", db.<Long>eval(RScript.Mode.READ_WRITE, REMAINING, RScript.ReturnType.LONG, key, 15, 30, 6000));
    say("read only", db.<Long>eval(RScript.Mode.READ_ONLY, "return redis.call('EXISTS', KEYS[1])", RScript.ReturnType.LONG, key));
    String sha = db.scriptLoad(REMAINING);
    say("in a transaction", List.of(
        db.<Long>evalSha(RScript.Mode.READ_WRITE, sha, RScript.ReturnType.LONG, key, 15, 30, 6000),
        db.<Long>evalSha(RScript.Mode.READ_WRITE, sha, RScript.ReturnType.LONG, key, 15, 30, 6000)));
    for (int i = 0; i < 2; i++) say("boolean", db.<Boolean>eval(RScript.Mode.READ_WRITE, FIRST, RScript.ReturnType.BOOLEAN, List.of("c")));
    try {
      db.eval(RScript.Mode.READ_WRITE, LIMITED, RScript.ReturnType.VALUE, List.of("c"));
    } catch (RuntimeException e) {
      say("error", cause(e));
    }
    client.shutdown();
  }
}

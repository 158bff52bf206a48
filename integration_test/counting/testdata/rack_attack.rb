# Drives rack-attack, which counts in a Redis, and prints what it answers, a line each.
#
#     ruby rack_attack.rb redis|redis-store|cache-store|redis-activesupport host:port|unix:/path prefix
#
# A line that begins with "seconds" has a time at its end, which may differ a little from run to run.

require "json"
require "rack"
require "rack/mock"
require "redis"
require "redis-store"
require "active_support"
require "active_support/cache"
require "active_support/cache/redis_cache_store"
require "active_support/notifications"
require "redis-activesupport"
require "rack/attack"

kind, address, prefix = ARGV
options =
  if address.start_with?("unix:")
    { path: address.delete_prefix("unix:") }
  else
    host, _, port = address.rpartition(":")
    { host: host, port: port.to_i }
  end
STORE =
  case kind
  when "redis" then Redis.new(**options)
  when "redis-store" then Redis::Store.new(options)
  when "cache-store"
    failed = ->(method:, exception:, returning:) { raise exception }
    ActiveSupport::Cache::RedisCacheStore.new(redis: Redis.new(**options), error_handler: failed)
  when "redis-activesupport" then ActiveSupport::Cache::RedisStore.new(options)
  else abort "no such store: #{kind}"
  end
DIRECT = Redis.new(**options)

def say(what, value)
  puts "#{what} = #{JSON.generate(value)}"
end

Rack::Attack.cache.store = STORE
Rack::Attack.cache.prefix = prefix

app = Rack::Builder.new do
  use Rack::Lint
  use Rack::Attack
  run ->(_env) { [200, { "Content-Type" => "text/plain" }, ["through"]] }
end
APP = Rack::MockRequest.new(app.to_app)

# ask makes a request and tells its status and what was counted for it.
def ask(path, ip)
  env = { "REMOTE_ADDR" => ip }
  holder = nil
  watch = ->(*, payload) { holder = payload[:request].env }
  response = nil
  ActiveSupport::Notifications.subscribed(watch, /rack_attack/) { response = APP.get(path, env) }
  matched, type, data = holder&.values_at("rack.attack.matched", "rack.attack.match_type", "rack.attack.match_data")
  [response.status, matched && [matched, type, data&.slice(:count, :limit)]]
end

HOUR = 3600
Rack::Attack.throttle("by ip", limit: 3, period: HOUR) { |request| request.ip if request.path == "/limited" }
vip = ->(request) { request.params["name"] == "vip" }
Rack::Attack.throttle("by name", limit: ->(r) { vip[r] ? 4 : 1 }, period: ->(r) { vip[r] ? 2 * HOUR : HOUR }) { |r| r.params["name"] }
Rack::Attack.throttle("short", limit: 2, period: 1) { |request| request.ip if request.path == "/short" }
Rack::Attack.track("seen", limit: 2, period: HOUR) { |request| request.ip if request.path == "/tracked" }
Rack::Attack.track("each") { |request| request.path == "/always" }
BAN = { maxretry: 2, findtime: HOUR, bantime: 500 }.freeze
Rack::Attack.blocklist("fail2ban") { |r| Rack::Attack::Fail2Ban.filter("fail:#{r.ip}", BAN) { r.path == "/secret" } }
Rack::Attack.blocklist("allow2ban") { |r| Rack::Attack::Allow2Ban.filter("allow:#{r.ip}", BAN) { r.path == "/login" } }
Rack::Attack.blocklist("brief") do |r|
  Rack::Attack::Allow2Ban.filter("brief:#{r.ip}", maxretry: 1, findtime: HOUR, bantime: 1) { r.path == "/brief" }
end

# A window is filled, and other callers have their own.
5.times { |i| say("limited #{i + 1}", ask("/limited", "10.0.0.1")) }
say("another caller", ask("/limited", "10.0.0.2"))
say("another path", ask("/", "10.0.0.1"))
3.times { |i| say("guest #{i + 1}", ask("/?name=guest", "10.0.0.3")) }
6.times { |i| say("vip #{i + 1}", ask("/?name=vip", "10.0.0.3")) }
env = Rack::MockRequest.env_for("/limited", "REMOTE_ADDR" => "10.0.0.2")
Rack::Attack.new(->(_) { [200, {}, []] }).call(env)
data = env["rack.attack.throttle_data"]["by ip"]
say("throttle data", data.slice(:count, :limit, :period, :discriminator))
say("seconds, its epoch is near", (Time.now.to_i - data[:epoch_time]).abs)

# The counts and their times, as the server has them.
now = Time.now.to_i
key = "#{prefix}:#{now / HOUR}:by ip:10.0.0.1"
say("count", DIRECT.get(key).to_i)
say("seconds, a window ends", DIRECT.ttl(key) - (HOUR - now % HOUR))

# A count is reset.
Rack::Attack.cache.reset_count("by ip:10.0.0.1", HOUR)
say("after reset of the count", ask("/limited", "10.0.0.1"))
say("counted by hand", Array.new(3) { Rack::Attack.cache.count("by hand", HOUR) })

# Tracks let all pass, and tell from the limit on.
4.times { |i| say("tracked #{i + 1}", ask("/tracked", "10.0.0.4")) }
say("always tracked", ask("/always", "10.0.0.4"))

# Fail2Ban blocks each offence, and after some of them all.
fail_key = "fail:10.0.0.5"
say("before", ask("/", "10.0.0.5"))
say("banned before", Rack::Attack::Fail2Ban.banned?(fail_key))
3.times { |i| say("secret #{i + 1}", ask("/secret", "10.0.0.5")) }
say("then", ask("/", "10.0.0.5"))
say("banned", Rack::Attack::Fail2Ban.banned?(fail_key))
say("seconds, banned for", DIRECT.ttl("#{prefix}:fail2ban:ban:#{fail_key}"))
Rack::Attack::Fail2Ban.reset(fail_key, BAN)
say("banned after reset", Rack::Attack::Fail2Ban.banned?(fail_key))
say("after reset", [ask("/", "10.0.0.5"), ask("/secret", "10.0.0.5"), ask("/", "10.0.0.5")])

# Allow2Ban lets offences pass until there are too many.
3.times { |i| say("login #{i + 1}", ask("/login", "10.0.0.6")) }
say("after logins", ask("/", "10.0.0.6"))
say("banned by logins", Rack::Attack::Allow2Ban.banned?("allow:10.0.0.6"))
Rack::Attack::Allow2Ban.reset("allow:10.0.0.6", BAN)
say("after logins and reset", ask("/", "10.0.0.6"))

# What the cache itself does.
cache = Rack::Attack.cache
say("read what is not there", cache.read("value"))
cache.write("value", 41, 700)
say("read", cache.read("value").to_i)
say("seconds, it lives", DIRECT.ttl("#{prefix}:value"))
cache.delete("value")
say("read after delete", cache.read("value"))

# A second window has a key of its own. Calls that were not all made in one second are made anew by another caller.
callers = 0
begin
  callers += 1
  second = Time.now.to_i
  answers = Array.new(3) { ask("/short", "10.2.0.#{callers}") }
end until Time.now.to_i == second
say("short", answers)
sleep 0.005 while Time.now.to_i == second
say("short, a second later", ask("/short", "10.2.0.#{callers}"))
# A ban ends by itself. One whose calls took too long is none: then another caller is tried.
tries = 0
begin
  tries += 1
  begun = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  answers = [ask("/brief", "10.1.0.#{tries}"), ask("/", "10.1.0.#{tries}")]
end while Process.clock_gettime(Process::CLOCK_MONOTONIC) - begun > 0.7
say("brief", answers)
until ask("/", "10.1.0.#{tries}")[0] == 200
  sleep 0.005
  raise "a ban of a second does not end" if Process.clock_gettime(Process::CLOCK_MONOTONIC) - begun > 120
end
say("it lasted", Process.clock_gettime(Process::CLOCK_MONOTONIC) - begun > 0.9)

# The count of that second is gone by itself.
left = "#{prefix}:#{second}:short:10.2.0.#{callers}"
until DIRECT.exists(left).zero?
  sleep 0.005
  raise "the count of a second does not end" if Time.now.to_i > second + 120
end

# All counts are reset at once.
say("before reset of all", ask("/limited", "10.0.0.2"))
Rack::Attack.reset!
say("keys after reset of all", DIRECT.scan_each(match: "#{prefix}*").to_a)
say("after reset of all", Array.new(4) { ask("/limited", "10.0.0.2") })

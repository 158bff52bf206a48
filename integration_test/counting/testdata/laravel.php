<?php

// Drives Laravel's RateLimiter, whose cache is in a Redis, and prints what it answers, a line each.
//
//     php laravel.php phpredis|predis host:port|unix:/path prefix
//
// A line that begins with "seconds" has a time at its end, which may differ a little from run to run.

error_reporting(E_ALL & ~E_DEPRECATED);
require_once 'Illuminate/Cache/autoload.php';
require_once 'Illuminate/Redis/autoload.php';
require_once 'Predis/autoload.php';

use Illuminate\Cache\RateLimiter;
use Illuminate\Cache\RedisStore;
use Illuminate\Cache\Repository;
use Illuminate\Redis\RedisManager;

[, $client, $address, $prefix] = $argv;
if (str_starts_with($address, 'unix:')) {
    $path = substr($address, 5);
    $server = $client === 'predis' ? ['scheme' => 'unix', 'path' => $path] : ['host' => $path, 'port' => 0];
} else {
    $colon = strrpos($address, ':');
    $server = ['host' => substr($address, 0, $colon), 'port' => (int) substr($address, $colon + 1)];
}
$redis = new RedisManager(null, $client, [
    'options' => ['prefix' => 'database_'],
    'default' => $server + ['database' => 0],
]);
$store = new RedisStore($redis, $prefix);
$cache = new Repository($store);
$limiter = new RateLimiter($cache);

function say(string $what, $value): void
{
    echo $what, ' = ', json_encode($value), "\n";
}

// number makes a number of what the cache answers: Laravel does not say whether that is a number or its digits.
function number($value): ?int
{
    if ($value !== null && !is_numeric($value)) {
        throw new Exception('no number: '.var_export($value, true));
    }

    return $value === null ? null : (int) $value;
}

function look(RateLimiter $limiter, string $when, string $key, int $limit): void
{
    say("$when, attempts", number($limiter->attempts($key)));
    say("$when, remaining", $limiter->remaining($key, $limit));
    say("$when, retries left", $limiter->retriesLeft($key, $limit));
    say("$when, too many", $limiter->tooManyAttempts($key, $limit));
    say("seconds, $when, available in", $limiter->availableIn($key));
}

// A window is filled.
look($limiter, 'unused', 'user', 3);
for ($i = 1; $i <= 3; $i++) {
    say("hit $i", $limiter->hit('user', 600));
    look($limiter, "after hit $i", 'user', 3);
}
say('hit 4', $limiter->hit('user', 600));
look($limiter, 'after hit 4', 'user', 3);
look($limiter, 'another key', 'other', 3);

// An attempt runs its callback until there were too many.
for ($i = 1; $i <= 4; $i++) {
    $ran = false;
    $answer = $limiter->attempt('attempted', 2, function () use (&$ran, $i) {
        $ran = true;

        return "answer $i";
    }, 120);
    say("attempt $i", $answer);
    say("attempt $i ran", $ran);
}
say('seconds, attempted', $limiter->availableIn('attempted'));

// Attempts are reset while the timer runs on, and then all is cleared.
say('reset', $limiter->resetAttempts('user'));
say('reset again', $limiter->resetAttempts('user'));
look($limiter, 'after reset', 'user', 3);
say('hit after reset', $limiter->hit('user', 600));
$limiter->clear('user');
look($limiter, 'after clear', 'user', 3);
say('hit after clear', $limiter->hit('user', 300));
look($limiter, 'again', 'user', 3);

// A count whose timer is gone is one of an earlier window.
$cache->forget('user:timer');
say('too many without a timer', $limiter->tooManyAttempts('user', 1));
look($limiter, 'after that', 'user', 1);

// Names of keys are made plain.
say('accents', $limiter->hit('déjà vu|1', 600));
say('plain', number($limiter->attempts('deja vu|1')));

// What the limiter needs of the cache, by amounts too.
say('added', $cache->add('sum', 0, 600));
say('added again', $cache->add('sum', 7, 600));
foreach ([1, 5, 1000000] as $amount) {
    say("increment by $amount", number($cache->increment('sum', $amount)));
    say("decrement by $amount", number($cache->decrement('sum', $amount)));
}
say('below 0', number($cache->decrement('sum', 3)));
say('has', $cache->has('sum'));
say('seconds, sum lives', $redis->connection()->ttl("$prefix:sum"));
say('increment of what is not there', number($cache->increment('new', 4)));
say('it lives', $redis->connection()->ttl("$prefix:new"));
say('put', $cache->put('put', 1, 50));
say('put and got', number($cache->get('put')));
say('seconds, put lives', $redis->connection()->ttl("$prefix:put"));
say('put several', $cache->putMany(['one' => 1, 'two' => 2], 50));
say('pulled', number($cache->pull('one')));
say('pulled again', $cache->pull('one'));
say('forever', $cache->forever('kept', 12));
say('kept lives', $redis->connection()->ttl("$prefix:kept"));
say('remembered', number($cache->remember('timer', 50, fn () => 5)));
say('remembered from then', number($cache->remember('timer', 50, fn () => 6)));
say('forget', $cache->forget('kept'));
say('forget again', $cache->forget('kept'));

// A window ends, and the next one begins. One whose calls took too long is none: then another key is tried.
for ($try = 1;; $try++) {
    $begin = microtime(true);
    $hits = [$limiter->hit("short$try", 1), $limiter->hit("short$try", 1)];
    $denied = $limiter->tooManyAttempts("short$try", 2);
    if (microtime(true) - $begin < 0.7) {
        break;
    }
    $limiter->clear("short$try");
}
say('short hits', $hits);
say('short denied', $denied);
while ($limiter->tooManyAttempts("short$try", 2)) {
    usleep(5000);
    if (microtime(true) - $begin > 120) {
        throw new Exception('a window of a second does not end');
    }
}
say('it lasted', microtime(true) - $begin > 0.9);
say('hit in the second window', $limiter->hit("short$try", 200));
look($limiter, 'second window', "short$try", 2);
$limiter->clear("short$try");

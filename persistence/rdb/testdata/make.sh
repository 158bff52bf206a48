#!/bin/sh
# Makes the RDB files of this directory anew, with the redis-server that is installed (they are from Debian's 7.0.15). What
# is in them is told by the table in ../../redisfiles_test.go. TATs and expiries are in the year 2096, so that Redis keeps them.
set -eu
cd "$(dirname "$0")"
dir=$(mktemp -d)
trap 'redis-cli -s "$dir/socket" shutdown nosave >/dev/null 2>&1 || true; rm -rf "$dir"' EXIT

tat=4000000000000000000
ms=4000000000000

# file NAME OPTIONS...: a server with these options takes the commands on the standard input, and what it then saves is NAME.
file() {
	name=$1
	shift
	redis-server --port 0 --unixsocket "$dir/socket" --dir "$dir" --dbfilename "$name" --save '' --enable-debug-command yes \
		--daemonize yes --logfile "$dir/log" --pidfile "$dir/pid" "$@" >/dev/null
	until redis-cli -s "$dir/socket" ping >/dev/null 2>&1; do sleep 0.1; done
	{ cat; echo save; } | redis-cli -s "$dir/socket" --no-raw >"$dir/out"
	if grep -n '(error)' "$dir/out"; then exit 1; fi
	redis-cli -s "$dir/socket" shutdown nosave
	while [ -S "$dir/socket" ]; do sleep 0.1; done
	mv "$dir/$name" "$name"
}

numbers() { seq -s ' ' "$1" "$2"; }
pairs() { seq "$1" "$2" | sed 's/.*/field:& value:&/' | tr '\n' ' '; } # field value
scores() { seq "$1" "$2" | sed 's/.*/&.5 member:&/' | tr '\n' ' '; }
long=$(printf 'tenant/%.0s' 1 2 3 4 5 6 7 8 9 10) # LZF makes it short

# Strings: keys and values of all codings, with and without an expiry, in several databases, and a library of functions.
file strings.rdb <<-EOF
	set plain $tat
	set user:1 $tat pxat $ms
	set expires-first $tat pxat $((ms - 1234))
	set past-int64 18446744073709551615
	set 7 $tat
	set -100 $tat
	set 300 $tat
	set -30000 $tat
	set 70000 $tat
	set -2000000000 $tat
	set 2147483648 $tat
	set "" $tat
	set "bin\x00\r\n\xff" $tat
	set $long $tat
	set is-8-bits 5
	set is-16-bits 300
	set is-32-bits 70000
	set is-64-bits 1700000000000000000
	set negative-8 -5
	set negative-16 -300
	set negative-32 -70000
	set negative-64 -4000000000000000000
	set word hello
	set empty ""
	set leading-zero 04000000000000000000
	set too-large 18446744073709551616
	set float 4e18
	set compressed $long$long$long
	set compressed-expires $long$long pxat $ms
	setbit bitmap 7000 1
	pfadd hyperloglog a b c
	function load "#!lua name=lib\nredis.register_function('f', function() return 1 end)"
	function load "#!lua name=longer\n-- $long$long\nredis.register_function('g', function() return 1 end)"
	select 3
	set elsewhere $tat
	set elsewhere-too $tat pxat $ms
	rpush a-list x
	set word hello
	select 15
	set elsewhere $tat
EOF

# Collections as Redis packs small ones, and a limit between each two, which shows that their ends are found.
collections() {
	cat <<-EOF
		set limit-a $tat
		rpush list a b 3
		sadd intset-16 1 2 3
		sadd intset-32 1 70000
		sadd intset-64 1 70000000000
		sadd set a b c
		zadd zset 1 a 2.5 b -inf c inf d
		hset hash a 1 b 2
		set limit-b $tat pxat $ms
		xadd stream 1-1 a 1
		xadd stream 1-2 a 1 b 2
		xadd stream 2-1 a 1
		xadd stream 3-1 c 1
		xdel stream 1-2
		xgroup create stream group 0
		xgroup create stream idle $
		xgroup createconsumer stream group never
		xreadgroup group group alice count 1 streams stream >
		xreadgroup group group bob count 9 streams stream >
		xack stream group 2-1
		xgroup create empty-stream group 0 mkstream
		expire hash 2000000000
		expire stream 2000000000
		set limit-c $tat
	EOF
}
collections | file packed.rdb
collections | file lru.rdb --maxmemory 1gb --maxmemory-policy allkeys-lru
collections | file lfu.rdb --maxmemory 1gb --maxmemory-policy allkeys-lfu

# Collections that are too large for that, written plain and compressed.
large() {
	cat <<-EOF
		debug quicklist-packed-threshold 200b
		set limit-a $tat
		rpush list $(numbers 1000 1100) $long$long$long$long $(numbers 1 100)
		sadd set $(pairs 1 60)
		sadd intset $(numbers 1 300)
		zadd zset $(scores 1 140) -inf low inf high
		hset hash $(pairs 1 140)
		hset hash-of-long-words a $long b $long$long
		set limit-b $tat pxat $ms
		$(seq 1 180 | sed 's/.*/xadd stream &-1 field value:& x y/')
		xgroup create stream group 0
		xreadgroup group group alice count 130 streams stream >
		xreadgroup group group bob count 20 streams stream >
		set limit-c $tat
	EOF
}
options='--hash-max-listpack-entries 100 --list-max-listpack-size 64 --set-max-intset-entries 100 --stream-node-max-entries 100'
large | file large.rdb $options --rdbcompression no
large | file compressed.rdb $options
# Hashes that are limits of CL.TAKE, packed, plain and compressed, and some that are not.
file limits.rdb <<-EOF
	hset packed gcra/1h "limit=5/1h tat=$tat" slide/2h,buckets=2 "limit=5/2h,algo=slide,buckets=2 newest=1111111 used=2,1"
	hset plain log/3h "limit=90/3h,algo=log calls=$tat:1,+1500:2,+1500:1,+1500:1,+1500:1" window/month "limit=9/month until=$tat used=5"
	hset compressed log/3h "limit=90/3h,algo=log calls=$tat:1$(printf ',+1500:1%.0s' 1 2 3 4 5 6 7 8 9 10 11 12)"
	hset expires gcra/1h "limit=5/1h tat=$tat"
	pexpireat expires $((ms - 1234))
	hset lives-as-long gcra/1h "limit=5/1h tat=$tat"
	pexpireat lives-as-long $ms
	hset without-policy @gone "limit=5/1h tat=$tat" gcra/2h "limit=5/2h tat=$tat"
	hset mixed gcra/1h "limit=5/1h tat=$tat" field value
	hset misnamed gcra/2h "limit=5/1h tat=$tat"
	hset number gcra/1h 5
	set limit $tat
	select 3
	hset elsewhere gcra/1h "limit=5/1h tat=$tat"
EOF
# A limit without a checksum, which Redis writes as 0.
echo "set limit $tat" | file unchecked.rdb --rdbchecksum no
ls -l ./*.rdb

//go:build linux

package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

// peer is a server of the comparison, celld included. All run with their defaults, except for the port, room for the row's keys
// and connections, and saving: only the rows about files write to disk.
type peer struct {
	name    string
	title   string
	args    func(t *tools, s *server) []string // program and flags
	command string                             // CL.THROTTLE, or what asks the same question; SET; EVALSHA; empty: PING only
	// allowed is the first integer of a reply that lets through.
	allowed byte
	count   func(s *server, command string) (counts, error)
	missing func(*tools) string // what is not there, or empty
	version func(*tools) string
}

var allPeers = []*peer{
	celldPeer("celld", "celld", func(t *tools) string { return t.celld }),
	celldPeer("before", "celld, before", func(t *tools) string { return t.before }),
	{
		name: "redis-cell", title: "redis-server + redis-cell", command: "CL.THROTTLE", allowed: '0',
		args: func(t *tools, s *server) []string {
			return append(redisArgs(t, s), "--loadmodule", t.redisCell)
		},
		count: countByInfo,
		missing: func(t *tools) string {
			if t.redis == "" {
				return missingRedis(t)
			}
			if _, err := os.Stat(t.redisCell); err != nil {
				return "no libredis_cell.so (make redis-cell builds it; REDIS_CELL_MODULE names another)"
			}
			return ""
		},
		version: func(t *tools) string {
			return "redis-cell " + t.redisCellVersion() + ", redis-server " + t.redisVersion()
		},
	},
	{
		name: "throttlecrab", title: "throttlecrab-server", command: "THROTTLE", allowed: '1',
		args: func(t *tools, s *server) []string {
			return []string{t.throttlecrab, "--redis", "--redis-host", "127.0.0.1", "--redis-port", strconv.Itoa(s.port),
				"--http", "--http-host", "127.0.0.1", "--http-port", strconv.Itoa(s.otherPort), // its counters
				"--store-cleanup-interval", strconv.Itoa(s.room.cleanupSeconds), "--log-level", "error"}
		},
		count: countByMetrics,
		missing: func(t *tools) string {
			if _, err := os.Stat(t.throttlecrab); err != nil {
				return "no throttlecrab-server (make throttlecrab builds it)"
			}
			return ""
		},
		version: func(t *tools) string { return firstMatch(`throttlecrab-server (\S+)`, t.throttlecrab, "--version") },
	},
	redisPeer("ping", "redis-server, PING", ""),
	redisPeer("set", "redis-server, SET", "SET"),
	redisPeer("lua", "redis-server, Lua", "EVALSHA"),
	redisPeer("count", "redis-server, INCR", "INCR"),
	rateOnRedis(),
	netHTTPPeer(),
	ratelimitPeer(),
}

// rateOnRedis is redis_rate, a library of the callers, whose server is the engine of celld's --store as well.
func rateOnRedis() *peer {
	p := redisPeer("redis-rate", "redis_rate, called directly", "Allow")
	p.version = func(t *tools) string {
		return "redis_rate " + moduleVersion("github.com/go-redis/redis_rate/v10") +
			", go-redis " + moduleVersion("github.com/redis/go-redis/v9") + ", redis-server " + t.redisVersion()
	}
	return p
}

// moduleVersion is of a module that this program is built with.
func moduleVersion(path string) string {
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if m.Path == path {
			return m.Version
		}
	}
	return "unknown"
}

// redisPeer is a redis-server without modules.
func redisPeer(name, title, command string) *peer {
	return &peer{
		name: name, title: title, command: command, allowed: '0',
		args:    redisArgs,
		count:   countByInfo,
		missing: missingRedis,
		version: func(t *tools) string { return "redis-server " + t.redisVersion() },
	}
}

// celldPeer is a build of celld.
func celldPeer(name, title string, binary func(*tools) string) *peer {
	return &peer{
		name: name, title: title, command: "CL.THROTTLE", allowed: '0',
		args: func(t *tools, s *server) []string {
			args := []string{binary(t), "--port", strconv.Itoa(s.port), "--loglevel", "warning"}
			args = append(args, diskArgs(s.room)...)
			if s.room.keys > 1_000_000 {
				args = append(args, "--max-keys", strconv.Itoa(s.room.keys), "--maxmemory", "0")
			}
			if s.room.connections > 0 {
				args = append(args, "--maxclients", strconv.Itoa(s.room.connections))
			}
			if s.room.engine != nil {
				args = append(args, "--store", "redis://"+s.room.engine.addr, "--store-timeout", "3s") // go-redis's
			}
			return slices.Concat(args, tlsArgs(s), httpArgs(s), t.celldFlags)
		},
		count: countByInfo,
		missing: func(t *tools) string {
			if binary(t) == "" {
				return "-before names no commit"
			}
			return ""
		},
		version: func(t *tools) string { return firstMatch(`celld (.*)`, binary(t), "--version") },
	}
}

// isCelld tells celld of whatever commit.
func (p *peer) isCelld() bool { return p.name == "celld" || p.name == "before" }

// keyWord is where redis-benchmark writes a key.
const keyWord = "key:__rand_int__"

func missingRedis(t *tools) string {
	if t.redis == "" {
		return "no redis-server in PATH"
	}
	return ""
}

func redisArgs(t *tools, s *server) []string {
	args := []string{t.redis, "--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir, "--loglevel", "warning"}
	args = append(args, diskArgs(s.room)...)
	if s.room.connections > 0 {
		args = append(args, "--maxclients", strconv.Itoa(s.room.connections))
	}
	return append(args, tlsArgs(s)...)
}

// diskArgs are the flags of celld and of redis-server about files.
func diskArgs(r room) []string {
	switch r.fsync {
	case "":
		return []string{"--save", "", "--appendonly", "no"}
	case snapshotOnly:
		return []string{"--save", "31536000 1", "--appendonly", "no"} // on, but never due
	}
	return []string{"--save", "", "--appendonly", "yes", "--appendfsync", r.fsync, "--auto-aof-rewrite-percentage", "0"}
}

// pings tells that the peer is only asked PING, as the floor of what a request can cost.
func (p *peer) pings() bool { return p.command == "" }

// throttles tells that the peer answers CL.THROTTLE.
func (p *peer) throttles() bool { return p.command == "CL.THROTTLE" }

// sets tells that the peer is only asked SET, which Redis writes to its append-only file. redis-cell 0.2.2 cannot be compared
// there: Redis writes nothing for its changes, as redis-cell tells it only the key.
func (p *peer) sets() bool { return p.command == "SET" }

// scripts tells that the peer is only asked for limiters in Lua, in the rows about CL.TAKE.
func (p *peer) scripts() bool { return p.command == "EVALSHA" }

// counts tells that the peer is only asked to count, by INCR or a script.
func (p *peer) counts() bool { return p.command == "INCR" }

// special tells that the peer is only asked in rows about one thing.
func (p *peer) special() bool {
	return p.sets() || p.scripts() || p.counts() || p.isLibrary() || p.name == netHTTP || p.name == ratelimit
}

// isLibrary tells that callers ask a library, and that the peer's server is what the library uses.
func (p *peer) isLibrary() bool { return p.name == "redis-rate" }

// words are the command that asks about a key of the form that redis-benchmark makes: 30 a minute, 16 at once.
func (p *peer) words() []string {
	if p.pings() {
		return []string{"PING"}
	}
	if p.sets() {
		return []string{p.command, keyWord, "1763739000000000000", "PX", "60000"}
	}
	return []string{p.command, keyWord, "15", "30", "60"}
}

func peerNames() (names []string) {
	for _, p := range allPeers {
		names = append(names, p.name)
	}
	return names
}

// choosePeers returns the peers of these names that are there, and for each other one why it is not.
func (b *bench) choosePeers(names []string) (peers []*peer, missing []string, err error) {
	for _, name := range names {
		if !slices.Contains(peerNames(), name) {
			return nil, nil, fmt.Errorf("no peer is called %q; there are %s", name, strings.Join(peerNames(), ", "))
		}
	}
	for _, p := range allPeers {
		if !slices.Contains(names, p.name) {
			continue
		}
		if why := p.missing(&b.tools); why != "" {
			missing = append(missing, p.title+": "+why)
			continue
		}
		peers = append(peers, p)
	}
	if len(peers) == 0 {
		return nil, nil, fmt.Errorf("no peer is there: %s", strings.Join(missing, "; "))
	}
	return peers, missing, nil
}

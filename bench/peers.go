//go:build linux

package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// peer is a server of the comparison. The peers and celld run with their defaults, but for the port, for saving (none of
// them writes to disk), and for room for the row's keys and connections.
type peer struct {
	name    string
	title   string
	args    func(t *tools, s *server) []string // program and flags
	command string                             // CL.THROTTLE, or what asks the same question; empty: PING only
	// allowed is the first integer of a reply that lets through.
	allowed byte
	count   func(*server) (counts, error)
	missing func(*tools) string // what is not there, or empty
	version func(*tools) string
}

var allPeers = []*peer{
	{
		name: "celld", title: "celld", command: "CL.THROTTLE", allowed: '0',
		args: func(t *tools, s *server) []string {
			args := []string{t.celld, "--port", strconv.Itoa(s.port), "--loglevel", "warning"}
			if s.room.keys > 1_000_000 {
				args = append(args, "--max-keys", strconv.Itoa(s.room.keys), "--maxmemory", "0")
			}
			if s.room.connections > 0 {
				args = append(args, "--maxclients", strconv.Itoa(s.room.connections))
			}
			return append(args, t.celldFlags...)
		},
		count:   countByInfo,
		missing: func(*tools) string { return "" },
		version: func(t *tools) string { return firstMatch(`celld (.*)`, t.celld, "--version") },
	},
	{
		name: "redis-cell", title: "redis-server + redis-cell", command: "CL.THROTTLE", allowed: '0',
		args: func(t *tools, s *server) []string {
			return append(redisArgs(t, s), "--loadmodule", t.redisCell)
		},
		count: countByInfo,
		missing: func(t *tools) string {
			if t.redis == "" {
				return "no redis-server in PATH"
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
				"--http", "--http-host", "127.0.0.1", "--http-port", strconv.Itoa(s.metricsPort), // its counters
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
	{
		name: "ping", title: "redis-server, PING",
		args:  redisArgs,
		count: countByInfo,
		missing: func(t *tools) string {
			if t.redis == "" {
				return "no redis-server in PATH"
			}
			return ""
		},
		version: func(t *tools) string { return "redis-server " + t.redisVersion() },
	},
}

func redisArgs(t *tools, s *server) []string {
	args := []string{t.redis, "--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
		"--dir", s.dir, "--loglevel", "warning"}
	if s.room.connections > 0 {
		args = append(args, "--maxclients", strconv.Itoa(s.room.connections))
	}
	return args
}

// pings tells that the peer is only asked PING, as the floor of what a request can cost.
func (p *peer) pings() bool { return p.command == "" }

// words are the command that asks about a key of the form that redis-benchmark makes: 30 a minute, 16 at once.
func (p *peer) words() []string {
	if p.pings() {
		return []string{"PING"}
	}
	return []string{p.command, "key:__rand_int__", "15", "30", "60"}
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

package enginetest

import (
	"fmt"
	"strconv"
	"strings"

	"celld/resp/wire"
)

// serverCommands tell what a node is.
func serverCommands() []command {
	return []command{
		{"info", -1, anyNode, noKeys, info},
		{"config", -2, noScript | whileLoading, noKeys, config},
		{"time", 1, whileLoading, noKeys, clock},
		{"role", 1, ofSentinel | noScript | whileLoading, noKeys, role},
	}
}

func (e *Engine) serverName() string {
	if e.options.Valkey {
		return "valkey"
	}
	return "redis"
}

func (e *Engine) version() string {
	if e.options.Valkey {
		return "8.1.1"
	}
	return "7.0.15"
}

// mode is as INFO and HELLO name it.
func (n *Node) mode() string {
	switch {
	case n.sentinel:
		return "sentinel"
	case n.engine.options.Kind == Cluster:
		return "cluster"
	}
	return "standalone"
}

func (n *Node) policy() string {
	if n.engine.options.Evicts {
		return "allkeys-random"
	}
	return "noeviction"
}

// info answers the fields that somebody reads, whatever sections are asked for.
func info(x *call) {
	n := x.node
	var b strings.Builder
	field := func(name string, value any) { fmt.Fprintf(&b, "%s:%v\r\n", name, value) }
	b.WriteString("# Server\r\n")
	if x.node.engine.options.Valkey {
		field("redis_version", "7.2.4")
		field("server_name", "valkey")
		field("valkey_version", x.node.engine.version())
	} else {
		field("redis_version", x.node.engine.version())
	}
	field("redis_mode", n.mode())
	field("run_id", n.run)
	if n.sentinel {
		x.verbatim(b.String())
		return
	}
	b.WriteString("\r\n# Memory\r\n")
	field("maxmemory", n.engine.options.MaxMemory)
	field("maxmemory_policy", n.policy())
	b.WriteString("\r\n# Persistence\r\n")
	field("aof_enabled", map[bool]int{true: 1}[n.engine.options.Files != NoFiles])
	b.WriteString("\r\n# Replication\r\n")
	if n.IsMaster() {
		field("role", "master")
	} else {
		field("role", "slave")
		field("master_link_status", map[bool]string{true: "up", false: "down"}[n.source != nil])
	}
	x.verbatim(b.String())
}

func config(x *call) {
	value, known := map[string]string{"save": "", "maxmemory-policy": x.node.policy()}[strings.ToLower(x.arg(len(x.args)-1))]
	if len(x.args) != 3 || x.option(1) != "GET" || !known {
		x.unsupported(errSyntax)
		return
	}
	x.pairs(1)
	x.out = wire.AppendBulks(x.out, strings.ToLower(x.arg(2)), value)
}

func clock(x *call) {
	x.array(2)
	x.bulk(strconv.FormatInt(x.nowNS/1e9, 10))
	x.bulk(strconv.FormatInt(x.nowNS%1e9/1000, 10))
}

func role(x *call) {
	n := x.node
	switch master := n.master(); {
	case n.sentinel:
		x.array(2)
		x.out = wire.AppendBulks(x.out, "sentinel")
		x.array(1)
		x.bulk(MasterName)
	case master != nil:
		state := "connected"
		if n.source == nil {
			state = "connect"
		}
		host, port := master.hostPort()
		x.array(5)
		x.out = wire.AppendBulks(x.out, "slave", host)
		x.int(port)
		x.bulk(state)
		x.int(0)
	default:
		var replicas []*Node
		for _, r := range n.engine.nodes {
			if r.source == n && r.up {
				replicas = append(replicas, r)
			}
		}
		x.array(3)
		x.bulk("master")
		x.int(0)
		x.array(len(replicas))
		for _, r := range replicas {
			host, port := r.hostPort()
			x.array(3)
			x.out = wire.AppendBulks(x.out, host, strconv.FormatInt(port, 10), "0")
		}
	}
}

func (n *Node) hostPort() (host string, port int64) {
	host, text, _ := strings.Cut(n.Addr, ":")
	port, _ = strconv.ParseInt(text, 10, 64)
	return host, port
}

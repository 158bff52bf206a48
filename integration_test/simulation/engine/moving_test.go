package engine

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"

	"celld/integration_test/harness/engines"
	"celld/internal/celldtest"
	"celld/internal/enginetest"
	"celld/resp/wire"
)

// TestDifferentialCluster asks the nodes of a simulated Cluster and of a real one the same, before and while a slot moves.
func TestDifferentialCluster(t *testing.T) {
	t.Parallel()
	real, sim := engines.Redis(t).Cluster(t), enginetest.Start(t, enginetest.Options{Kind: enginetest.Cluster, Replicas: 1})
	var names []string // of the real nodes, and what the simulated ones are called
	for i, n := range real.Nodes {
		names = append(names, n.Addr, sim.Nodes()[i].Addr, n.ID(), sim.Nodes()[i].ID())
		host, port, _ := strings.Cut(n.Addr, ":")
		names = append(names, fmt.Sprintf("$%d\r\n%s\r\n:%s\r\n", len(host), host, port), fmt.Sprintf("$8\r\n10.0.0.%d\r\n:6379\r\n", i+1))
	}
	rename := strings.NewReplacer(names...)
	var all []*two // connections to each node
	for i, n := range real.Nodes {
		ours, err := sim.Dial(context.Background(), sim.Nodes()[i].Addr)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := net.Dial("tcp", n.Addr)
		if err != nil {
			t.Fatal(err)
		}
		c := &two{&both{t: t}, [2]*half{newHalf(t, ours), newHalf(t, theirs)}}
		defer c.close()
		all = append(all, c)
	}
	masks := regexp.MustCompile(`cluster_(size|current_epoch|my_epoch|stats).*\r\n`)
	ask := func(node int, line string) {
		t.Helper()
		frame := wire.AppendCommand(nil, strings.Fields(line)...)
		got, want := all[node].halves[0].ask(frame, 1), rename.Replace(all[node].halves[1].ask(frame, 1))
		if line == "CLUSTER INFO" {
			got, want = masks.ReplaceAllString(got, ""), masks.ReplaceAllString(want, "")
			_, got, _ = strings.Cut(got, "\r\n")
			_, want, _ = strings.Cut(want, "\r\n")
			want = strings.Split(want, "total_cluster")[0] + "\r\n"
		}
		if comparable(got) != comparable(want) {
			t.Errorf("node %d: %s:\n%q, redis-server:\n%q", node, line, got, want)
		}
	}
	r := celldtest.NewRand(t)
	words := []string{"{k}a", "{k}b", "{k}c", "{k}d", "{l}a", "{l}b", "m", "n"}
	forms := []string{
		"GET k", "SET k x", "EXISTS k k", "DEL k k", "PUBLISH k x", "PING", "DISCARD", "EVAL s 1 k", "EVAL s 2 k k",
		"EVAL s 2 k k", "EXISTS {k}a {k}b", "EXISTS {k}a {k}d", "SELECT 0", "SELECT 1",
	}
	rounds := func(n int) {
		for range n {
			line := strings.Fields(forms[r.IntN(len(forms))])
			for i, word := range line {
				switch word {
				case "k":
					line[i] = words[r.IntN(len(words))]
				case "s":
					line[i] = pick(r, "return(redis.call('GET',KEYS[1]))", "return(redis.call('SET',KEYS[#KEYS],'x'))")
				}
			}
			node := r.IntN(len(all))
			if r.IntN(2) == 0 {
				ask(node, "ASKING")
			}
			ask(node, strings.Join(line, " "))
		}
	}
	for node := range 3 {
		ask(node, "CLUSTER INFO")
	}
	celldtest.Eventually(t, "all know the replicas", func() bool {
		return strings.Count(real.Nodes[0].Do("CLUSTER", "SLOTS"), "127.0.0.1") == 6
	})
	ask(0, "CLUSTER SLOTS")
	rounds(500)
	from := real.MasterOf("{k}")
	i := 0
	for real.Nodes[i] != from {
		i++
	}
	to := (i + 1) % 3
	slot := real.Slot("{k}")
	all[i].halves[0].ask(wire.AppendCommand(nil, "SET", "{k}a", "x"), 1)
	all[i].halves[1].ask(wire.AppendCommand(nil, "SET", "{k}a", "x"), 1)
	ask(i, "SET {k}e old PX 1")
	real.Nodes[to].OK("CLUSTER", "SETSLOT", fmt.Sprint(slot), "IMPORTING", from.ID())
	from.OK("CLUSTER", "SETSLOT", fmt.Sprint(slot), "MIGRATING", real.Nodes[to].ID())
	move := sim.MoveSlot(slot, sim.Nodes()[to])
	celldtest.Eventually(t, "a key has expired", func() bool { return strings.HasPrefix(from.Do("GET", "{k}e"), "-ASK") })
	ask(to, "ASKING")
	ask(to, "SET {k}e new") // which the old one does not replace
	for range 20 {
		rounds(100)
		if exists := from.Do("EXISTS", "{k}a"); exists == ":1\r\n" {
			// A call after ASKING may have put the key there.
			from.OK("MIGRATE", "127.0.0.1", real.Nodes[to].Port, "{k}a", "0", "1000", "REPLACE")
			move.Keys(1) // the first by name
		}
	}
	move.End()
	for _, key := range words[:4] {
		from.Do("MIGRATE", "127.0.0.1", real.Nodes[to].Port, key, "0", "1000", "REPLACE")
	}
	for _, n := range real.Nodes[:3] {
		n.OK("CLUSTER", "SETSLOT", fmt.Sprint(slot), "NODE", real.Nodes[to].ID())
	}
	for _, n := range real.Nodes[3:] {
		celldtest.Eventually(t, "replicas know", func() bool {
			return n.Do("GET", "{k}a") == fmt.Sprintf("-MOVED %d %s\r\n", slot, real.Nodes[to].Addr)
		})
	}
	rounds(500)
	ask(to, "GET {k}e")
	ask(0, "CLUSTER SLOTS")
}

//go:build !race

package session

// Tests of thousands of commands by one goroutine each, in which the race detector finds nothing and takes ten times as long.

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"celld/resp/session/sessiontest"
	"celld/resp/stats"
)

// Whatever is asked, in one pipeline on each of some connections, is answered as by a server that answers at once.
func TestPipelinesWaitAsTheyAreAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	forms := []string{
		"CL.THROTTLE $K 4 1 60", "CL.THROTTLE $K 2 1 60 $N", "CL.THROTTLE $K @p $N", "CL.THROTTLE $K 4 x 60",
		"CL.THROTTLE $K 1 1 60 4611686018427387904", "CL.TAKE $K 5/1m",
		"CL.TAKE $K 3/1m 9/1h,algo=window COST 2 UPTO FULL", "CL.TAKE $K @p US", "CL.TAKE $K 5/x",
		"CL.MTAKE 2 $K 5/1m l 6/1m", "CL.MTAKE 2 $K 5/1m", "CL.GIVE $K 5/1m 1", "CL.GIVE $K 5/1m 0", "PING", "GET $K", "TTL $K", "DEL $K",
		"CLIENT REPLY SKIP", "CLIENT REPLY SKIP", "ECHO hi", "CL.POLICY SET p $N/1m", "INFO nosuch", "HELLO 3",
	}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		at, _ := laterWorld(t)
		at.Limiter = at.Store
		later, l := laterWorld(t)
		var pipelines []string
		for range 1 + r.IntN(3) {
			var b strings.Builder
			for range r.IntN(150) {
				form := forms[r.IntN(len(forms))]
				if r.IntN(3) > 0 {
					form = forms[0]
				}
				form = strings.NewReplacer("$K", fmt.Sprint("k", r.IntN(3)), "$N", strconv.Itoa(r.IntN(5)-1)).Replace(form)
				b.WriteString(sessiontest.Frame(strings.Fields(form)...))
			}
			pipelines = append(pipelines, b.String())
		}
		for _, pipeline := range pipelines { // on one key after the other, as the answers' order is not told
			p, q := at.connect(), later.connect()
			want, cut := p.send(pipeline), r.IntN(len(pipeline)+1)
			got := q.send(pipeline[:cut])
			if cut < len(pipeline) {
				got += q.send(pipeline[cut:])
			}
			if got += q.settle(l); got != want {
				t.Fatalf("seed %d: %q\n got %q\nwant %q", seed, pipeline, got, want)
			}
		}
		for _, name := range []string{"cl.throttle", "cl.take", "cl.mtake", "cl.give"} {
			a, b := stats.Of(at.Commands.Find([]byte(name))), stats.Of(later.Commands.Find([]byte(name)))
			aCalls, _, _ := a.Read()
			bCalls, _, _ := b.Read()
			if aCalls != bCalls || a.Failed.Load() != b.Failed.Load() {
				t.Errorf("seed %d: %s: %d calls and %d failed, want %d and %d", seed, name, bCalls, b.Failed.Load(), aCalls,
					a.Failed.Load())
			}
		}
		if a, b := at.Decisions.Sum(), later.Decisions.Sum(); a != b {
			t.Errorf("seed %d: decisions %v, want %v", seed, b, a)
		}
	}
}

// Whatever is asked, in pipelines that are cut anywhere, is answered on an engine as in memory, and counted the same.
func TestPipelinesOnAnEngine(t *testing.T) {
	t.Parallel()
	forms := []string{
		"CL.THROTTLE $K 4 1 60", "CL.TAKE $K 5/1m", "GET $K", "SET $K 179000090000000000$N", "SETNX $K 1790000800000000000", "GETDEL $K",
		"DEL $K j", "EXISTS $K $K", "TTL $K", "EXPIRE $K 5$N", "RENAME $K k$N", "COPY $K k$N REPLACE", "HGETALL $K", "TYPE $K",
		"PING", "CLIENT REPLY SKIP", "CLIENT REPLY OFF", "CLIENT REPLY ON", "ECHO hi", "DBSIZE", "OBJECT ENCODING $K", "GET", "NOSUCH",
		"MULTI", "MULTI", "EXEC", "EXEC", "DISCARD", "UNWATCH", "HELLO 3", "CLIENT TRACKING ON", "INFO nosuch", "CL.RENEW $K 1 5",
		"EVAL return{redis.call('EXISTS',KEYS[1]),redis.pcall('SET',KEYS[1],'179000070000000000$N')} 1 $K",
		"EVAL return{redis.call('HSET',KEYS[1],'a','b')} 1 $K",
	}
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		at := newWorld(t)
		w, e := engineWorld(t, r.IntN(2) > 0)
		p, q := at.connect(), w.connect()
		var b strings.Builder
		multi := false
		for range r.IntN(60) {
			form := forms[r.IntN(len(forms))]
			if multi && form == "DBSIZE" { // which is refused
				continue
			}
			multi = form == "MULTI" || multi && form != "EXEC" && form != "DISCARD"
			form = strings.NewReplacer("$K", fmt.Sprint("k", r.IntN(3)), "$N", strconv.Itoa(r.IntN(5))).Replace(form)
			b.WriteString(sessiontest.Frame(strings.Fields(form)...))
		}
		pipeline := b.String()
		cut := r.IntN(len(pipeline) + 1)
		want, got := p.send(pipeline), q.send(pipeline[:cut])
		got += q.send(pipeline[cut:])
		if got += answerAll(e, q); got != want {
			t.Fatalf("seed %d: %q\n got %q\nwant %q", seed, pipeline, got, want)
		}
		for _, row := range at.Commands.Rows {
			name := row.Name
			a, b := stats.Of(row), stats.Of(w.Commands.Find([]byte(name)))
			aCalls, _, _ := a.Read()
			bCalls, _, _ := b.Read()
			if aCalls != bCalls || a.Failed.Load() != b.Failed.Load() || a.Rejected.Load() != b.Rejected.Load() {
				t.Errorf("seed %d: %s: %d calls and %d failed, want %d and %d", seed, name, bCalls, b.Failed.Load(), aCalls,
					a.Failed.Load())
			}
		}
		if a, b := at.Stats.ErrorReplies.Load(), w.Stats.ErrorReplies.Load(); a != b {
			t.Errorf("seed %d: %d errors, want %d", seed, b, a)
		}
		if a, b := at.Decisions.Sum(), w.Decisions.Sum(); a != b {
			t.Errorf("seed %d: decisions %v, want %v", seed, b, a)
		}
		if len(e.Opened) != e.Closed {
			t.Errorf("seed %d: %d views, %d closed", seed, len(e.Opened), e.Closed)
		}
	}
}

// Each call of a pipeline is answered under its own limit, whatever the number of limits, also where they are more than shapes
// are kept of.
func TestPipelinesOfManyLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.connect()
	for range 20 {
		var pipeline, want strings.Builder
		for range 1000 {
			limit, shape := 1+rand.IntN(300), rand.IntN(3)
			switch shape {
			case 0:
				pipeline.WriteString(sessiontest.Frame("CL.THROTTLE", "k", fmt.Sprint(limit-1), "1", "60", "0"))
				fmt.Fprintf(&want, "*5\r\n:0\r\n:%d\r\n:%d\r\n:-1\r\n:0\r\n", limit, limit)
			case 1:
				pipeline.WriteString(sessiontest.Frame("CL.TAKE", "t", fmt.Sprint(limit, "/1h"), "PEEK"))
				fmt.Fprintf(&want, "*7\r\n:0\r\n:%d\r\n:%d\r\n:-1\r\n:0\r\n:0\r\n:0\r\n", limit, limit)
			case 2:
				pipeline.WriteString("1\r\n")
				fmt.Fprintf(&want, "-ERR unknown command '1', with args beginning with: \r\n")
				pipeline.WriteString(sessiontest.Frame("ECHO", fmt.Sprint(limit)))
				fmt.Fprintf(&want, "$%d\r\n%d\r\n", len(fmt.Sprint(limit)), limit)
			}
			if rand.IntN(3) > 0 { // some in a row
				n := rand.IntN(100)
				for i := range n {
					pipeline.WriteString(sessiontest.Frame("CL.THROTTLE", "k", fmt.Sprint(limit+i), "1", "60", "0"))
					fmt.Fprintf(&want, "*5\r\n:0\r\n:%d\r\n:%d\r\n:-1\r\n:0\r\n", limit+i+1, limit+i+1)
				}
			}
		}
		if got := p.send(pipeline.String()); got != want.String() {
			i := 0
			for i < len(got) && got[i] == want.String()[i] {
				i++
			}
			t.Fatalf("at %d: %.80q, want %.80q", i, got[i:], want.String()[i:])
		}
	}
}

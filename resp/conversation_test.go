package resp

import (
	"testing"
	"testing/synctest"
	"time"

	"celld/internal/celldtest"
	"celld/resp/command"
	"celld/resp/command/spec"
	"celld/resp/session/sessiontest"
)

// The files in testdata hold what is said to celld, and what it answers. integration_test/redis compares those in redis and scripts
// with redis-server. Those in celld hold what Redis has not:
//
//	go test ./resp -run TestConversations -update   records what celld answers to them now, to be read before it is committed

func TestConversations(t *testing.T) {
	for _, folder := range []string{"redis", "scripts", "celld"} {
		for _, c := range celldtest.ReadConversations(t, "testdata/"+folder) {
			t.Run(folder+"/"+c.Name, func(t *testing.T) {
				var settings []string
				if c.Name == "auth" {
					settings = []string{"requirepass", "sesame"}
				}
				for _, resp3 := range []bool{false, true} {
					if c.Name == "auth" && resp3 {
						continue
					}
					synctest.Test(t, func(t *testing.T) { // so sleep takes no time
						w := newWorld(t, settings...)
						if c.Name == "slow" {
							row := sleepRow(t)
							w.sessions.Commands.Rows = append(w.sessions.Commands.Rows, row)
							w.sessions.Commands.Add(row)
						}
						begin := time.Now()
						w.sessions.Clock = func() int64 { return w.nowNS + int64(time.Since(begin)) }
						for _, paragraph := range c.Paragraphs {
							w.play(t, resp3, paragraph, *celldtest.Update && folder == "celld")
						}
					})
				}
				if *celldtest.Update && folder == "celld" {
					c.Write(t)
				}
			})
		}
	}
}

// say says a line and returns what is answered, and whether the connection has ended.
func (p *peer) say(t *testing.T, x *celldtest.Exchange) (got string, end bool) {
	words, raw := x.Words(t)
	text := words[0]
	if !raw {
		text = sessiontest.Frame(words...)
	}
	more := p.serve([]byte(text))
	for more || p.tr.HasMore() {
		if synctest.Wait(); p.tr.IsPaused() { // it waits for the time
			celldtest.Pass(time.Millisecond)
		}
		more = p.serve(nil)
	}
	got = p.tr.Take()
	return got, p.tr.Closed && (raw || got == "")
}

// play says a paragraph on a connection of its own, with no keys.
func (w *world) play(t *testing.T, resp3 bool, paragraph []*celldtest.Exchange, record bool) {
	p := w.connect()
	defer p.Closed()
	if resp3 {
		p.do("HELLO", "3")
	}
	p.do("FLUSHALL")
	for _, x := range paragraph {
		if d := x.Sleep(); d > 0 {
			celldtest.Pass(d)
			continue
		}
		got, end := p.say(t, x)
		now := time.Unix(0, w.sessions.Clock())
		if record {
			x.Record(resp3, got, end, now)
		}
		if !x.Fits(resp3, got, end, now) {
			t.Errorf("RESP3 %v; %q\n %s\ncelld    %q, closed %v\nrecorded %s", resp3, paragraph[0].Command, x.Command, got, end,
				x.Recorded(resp3))
		}
		if end {
			return
		}
	}
}

// sleepRow is a command that takes as many seconds as its argument says.
func sleepRow(t *testing.T) *command.Row {
	return &command.Row{Name: "sleep", Arity: 2, Flags: spec.Admin, Run: func(c *command.Call) {
		d, err := time.ParseDuration(string(c.Args[1]) + "s")
		if err != nil {
			t.Error(err)
		}
		time.Sleep(d)
		c.OK()
	}}
}

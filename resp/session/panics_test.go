package session

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"celld/resp/command"
	"celld/resp/door"
	"celld/resp/session/sessiontest"
	"celld/store"
)

var boomRow = &command.Row{Name: "boom", Arity: 1, Run: onSession(func(*Session, [][]byte) { panic("at the disco") })}

// The commands before the one that panics have run, and are answered.
func TestPanicAnswersWhatCameBefore(t *testing.T) {
	for raw, want := range map[string]string{
		"PING\r\nBOOM\r\nPING\r\n":                                         "+PONG\r\n-" + door.ErrInternal + "\r\n",
		"PING\r\nMULTI\r\nPING\r\nBOOM\r\nEXEC\r\nPING\r\n":                "+PONG\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n-" + door.ErrInternal + "\r\n",
		"PING\r\nCLIENT REPLY SKIP\r\nBOOM\r\n":                            "+PONG\r\n",
		"CLIENT REPLY OFF\r\nBOOM\r\n":                                     "",
		sessiontest.Frame("CL.THROTTLE", "k", "1", "1", "60") + "BOOM\r\n": "*5\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:60\r\n-" + door.ErrInternal + "\r\n",
	} {
		w := newWorld(t)
		w.Commands.Add(boomRow)
		c := w.connect()
		if got := c.send(raw); got != want || !c.tr.Closed {
			t.Errorf("%q: got %q, want %q, closed %v", raw, got, want, c.tr.Closed)
		}
	}
}

// After a panic in the limits, or in what they call, a shard may be locked.
func TestPanicInTheLimitsEndsTheProcess(t *testing.T) {
	w := newWorld(t)
	w.Commands.Add(&command.Row{Name: "boom", Arity: 1, Run: onSession(func(s *Session, _ [][]byte) {
		_ = s.srv.Store.Update([]byte("k"), (*host)(s).Access(), func(store.Value, bool) (store.Value, bool) { panic("at the disco") })
	})})
	code := -1
	w.Exit = func(c int) { code = c }
	w.connect().send("BOOM\r\n")
	if text := w.log.String(); code != 1 || strings.Count(text, "cannot go on") != 1 || !strings.Contains(text, "at the disco") {
		t.Errorf("exit code %d, log %s", code, text)
	}
}

// boomLog panics when it is told of BOOM's panic: a panic where nobody expects one.
type boomLog struct{ slog.Handler }

func (boomLog) Enabled(context.Context, slog.Level) bool { return true }

func (boomLog) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "command" && a.Value.String() == "boom" {
			panic("in the log")
		}
		return true
	})
	return nil
}

// A panic outside of a command costs its connection.
func TestCarriersSurviveAPanicInAConnection(t *testing.T) {
	o := carrierTest{rows: []*command.Row{boomRow}, log: slog.New(boomLog{slog.DiscardHandler})}
	o.run(t, func(t *testing.T, srv *Service, addr string) {
		c := sessiontest.Dial(t, addr)
		c.Ask("PING\r\n", "+PONG\r\n")
		for round := range int64(3) {
			broken := sessiontest.Dial(t, addr)
			broken.Send("BOOM\r\n")
			broken.WantClosed()
			c.Ask("PING\r\n", "+PONG\r\n")
			eventually(t, "end of the broken one", func() bool { return srv.Clients.Count() == 1 })
			if n := srv.Stats.Panics.Load(); n != 2*(round+1) {
				t.Errorf("%d panics", n)
			}
		}
	})
}

// wakePanics is a transport that cannot be woken or closed.
type wakePanics struct{ sink }

func (*wakePanics) Wake()      { panic("too early") }
func (*wakePanics) Close(bool) { panic("too early") }

func TestCarriersSurviveAPanicInTheCron(t *testing.T) {
	t.Parallel()
	carrierTest{settings: []string{"timeout", "3600"}}.run(t, func(t *testing.T, srv *Service, addr string) {
		s, _ := srv.NewSession(sessiontest.RemoteAddr, sessiontest.LocalAddr)
		s.Open(&wakePanics{}, -1)
		defer s.Closed()
		skew(srv, 2*time.Hour)
		eventually(t, "second panic", func() bool { return srv.Stats.Panics.Load() >= 2 })
		sessiontest.Dial(t, addr).Ask("PING\r\n", "+PONG\r\n")
	})
}

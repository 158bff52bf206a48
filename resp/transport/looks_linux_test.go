package transport

import (
	"testing"
	"time"
)

// A round looks at those who came or are woken for as long as its reads took, and at least for a millisecond. The others are next.
func TestHowLongARoundLooks(t *testing.T) {
	const came = 64
	for _, test := range []struct {
		reads, look time.Duration // look: of each
		want        int           // in the first round
	}{
		{5 * time.Millisecond, 0, came}, {0, 20 * time.Microsecond, came}, {0, 100 * time.Microsecond, wokenStep},
		{2 * time.Millisecond, 100 * time.Microsecond, 2 * wokenStep}, {5 * time.Millisecond, 170 * time.Microsecond, 2 * wokenStep},
	} {
		c := &carried{}
		c.still.Store(true)
		c.skew(time.Hour)
		c.handle = func(*fakeSession, string) bool { c.skew(test.reads); return false }
		l := loopOf(t, c)
		_, busy := carry(t, c, l)
		round(t, l, func() {})
		c.onWake = func(*fakeSession) { c.skew(test.look) }
		conns := make([]*epollConn, came)
		for i := range conns {
			conns[i], _ = carry(t, c, l)
		}
		round(t, l, func() {})
		for len(l.woken) > 0 {
			round(t, l, func() {})
		}
		for _, conn := range conns {
			conn.Wake()
		}
		busy.send("work\n")
		round(t, l, func() {})
		if looked := came - len(l.woken); looked != test.want {
			t.Errorf("%+v: the first round looks at %d of %d", test, looked, came)
		}
		for rounds := 0; len(l.woken) > 0; rounds++ {
			if round(t, l, func() {}); rounds > came {
				t.Fatal("the others are never looked at")
			}
		}
		l.closeAll()
	}
}

// However many are woken at one instant, a round sends no more replies than to those that one epoll_wait names.
func TestHowManyARoundAnswersThatAreWoken(t *testing.T) {
	c := &carried{}
	c.still.Store(true)
	l := loopOf(t, c)
	conns := make([]*epollConn, 2*wokenReplies+10)
	for i := range conns {
		conns[i], _ = carry(t, c, l)
	}
	for round(t, l, func() {}); len(l.woken) > 0; {
		round(t, l, func() {})
	}
	c.onWake = func(s *fakeSession) { s.reply("woken\n") }
	for _, conn := range conns {
		conn.Wake()
	}
	for _, left := range []int{wokenReplies + 10, 10, 0} {
		if round(t, l, func() {}); len(l.woken) != left {
			t.Errorf("%d are left, want %d", len(l.woken), left)
		}
	}
	l.closeAll()
}

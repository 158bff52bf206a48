package resp

import (
	"context"
	"strings"
	"testing"
	"time"

	"celld/resp/session/sessiontest"
	"celld/resp/wire"
)

func (w *world) doInside(t *testing.T, ctx context.Context, taken func(*Taken), commands ...string) string {
	t.Helper()
	var frames []byte
	for _, command := range commands {
		frames = wire.AppendCommand(frames, strings.Fields(command)...)
	}
	replies, err := w.Do(ctx, Caller{Addr: "192.0.2.1:7", Trusted: true}, frames, []byte(">"), taken)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(string(replies), ">")
}

// Commands within the process are those of a client that may do everything: monitors see them, and each take is told of in its order.
func TestDo(t *testing.T) {
	w := newWorld(t)
	p := w.connect()
	p.want("CONFIG SET requirepass secret", "+OK\r\n")
	p.want("MONITOR", "+OK\r\n")
	var granted []int64
	got := w.doInside(t, t.Context(), func(c *Taken) { granted = append(granted, c.Granted) },
		"CL.TAKE k 5/1h COST 2", "CL.TAKE k 5/1h COST 9", "CL.TAKE k nonsense", "CL.GIVE k 5/1h 1",
		"CL.TAKE k 5/1h UPTO COST 9", "GET none", "CL.MTAKE 2 k 5/1h l 5/1m PEEK")
	if want := "*7\r\n:0\r\n:5\r\n:3\r\n:-1\r\n:1440000\r\n:2\r\n:0\r\n" +
		"*7\r\n:1\r\n:5\r\n:3\r\n:-1\r\n:1440000\r\n:0\r\n:0\r\n" +
		"-ERR invalid limit: limit 'nonsense': expected count/period, such as 100/1m\r\n:1\r\n" +
		"*7\r\n:0\r\n:5\r\n:0\r\n:-1\r\n:3600000\r\n:4\r\n:0\r\n_\r\n"; !strings.HasPrefix(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	if len(granted) != 4 || granted[0] != 2 || granted[1] != 0 || granted[2] != 4 || granted[3] != 0 {
		t.Errorf("told of %v", granted)
	}
	seen := p.send("")
	if !strings.Contains(seen, `[0 192.0.2.1:7] "CL.TAKE" "k" "5/1h" "COST" "2"`) || strings.Count(seen, ":7]") != 7 {
		t.Errorf("%q", seen)
	}
}

// Where replies wait for the disk, those within the process do, too.
func TestDoNeedsTheDisk(t *testing.T) {
	disk := &sessiontest.Disk{}
	w := newWorldOn(t, disk, t.TempDir())
	if err := w.loadAll(nil); err != nil {
		t.Fatal(err)
	}
	got := w.doInside(t, t.Context(), nil, "CL.TAKE k 5/1h", "GET none")
	if !strings.HasPrefix(got, "*7\r\n:0\r\n") || disk.Syncs.Load() == 0 {
		t.Errorf("%q after %d syncs", got, disk.Syncs.Load())
	}
	disk.Full.Store(true)
	_, err := w.Do(t.Context(), Caller{Trusted: true}, wire.AppendCommand(nil, "CL.TAKE", "k", "5/1h"), nil, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "MISCONF ") {
		t.Errorf("%v", err)
	}
	if got = w.doInside(t, t.Context(), nil, "GET none"); got != "_\r\n" {
		t.Errorf("%q", got)
	}
}

// Calls that wait within the process are answered when the server stops. After that no call waits.
func TestDoWaits(t *testing.T) {
	w := newWorld(t)
	w.doInside(t, t.Context(), nil, "CL.TAKE k 1/1h", "CL.TAKE l 1/1h")
	answered := make(chan string)
	p := w.connect()
	p.want("CONFIG SET wait-max 4000000", "+OK\r\n")
	wait := func() { answered <- w.doInside(t, context.Background(), nil, "CL.TAKE k 1/1h WAIT 3600000") }
	go wait()
	eventually(t, "wait", func() bool { callers, _ := w.sessions.Port.Waiting(); return callers == 1 })
	ctx, leave := context.WithTimeout(t.Context(), time.Millisecond)
	defer leave()
	_, err := w.Do(ctx, Caller{Trusted: true}, wire.AppendCommand(nil, "CL.TAKE", "l", "1/1h", "WAIT", "4000000"), nil, nil)
	if callers, _ := w.sessions.Port.Waiting(); err != context.DeadlineExceeded || callers != 1 {
		t.Errorf("whose caller has gone: %v, %d wait", err, callers)
	}
	w.sessions.RefuseWaiting()
	for range 2 {
		if got := <-answered; !strings.HasPrefix(got, "*7\r\n:1\r\n") {
			t.Errorf("%q", got)
		}
		go wait()
	}
	<-answered
}

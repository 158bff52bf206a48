package resp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"celld/cell"
	"celld/resp/door"
	"celld/resp/session/sessiontest"
)

var inside = door.Caller{Addr: "192.0.2.1:7", Trusted: true}

// ask makes an door.Ask of key limit [option value]...
func ask(key, limit string, options ...door.Option) door.Ask {
	return door.Ask{Key: key, Limits: []string{limit}, Options: options}
}

// told is how calls were answered: what was granted, or the error.
func (w *world) told(ctx context.Context, asks ...door.Ask) (told string, err error) {
	err = w.Door.Take(ctx, inside, asks, func(t *door.Taken, err error) {
		if err != nil {
			told += fmt.Sprintf("%v; ", err)
		} else {
			told += fmt.Sprintf("%d %d; ", t.Granted, t.Limits[t.Binding].Remaining)
		}
	})
	return told, err
}

// Commands within the process are those of a client that may do everything: monitors see them, and each take is told of in its order. If
// one take is not well formed, none is taken.
func TestDo(t *testing.T) {
	w := newWorld(t)
	p := w.connect()
	p.want("CONFIG SET requirepass secret", "+OK\r\n")
	p.want("CL.POLICY SET two 9/1h 5/1m", ":1\r\n")
	p.want("MONITOR", "+OK\r\n")
	cost := func(n int64) door.Option { return door.Option{Name: "COST", N: n} }
	got, err := w.told(t.Context(), ask("k", "5/1h", cost(2)), ask("k", "5/1h", cost(9)),
		ask("k", "5/1h", door.Option{Name: "UPTO"}, cost(9)),
		door.Ask{Keys: []string{"k", "l"}, Limits: []string{"5/1h", "5/1m"}, Options: []door.Option{{Name: "PEEK"}}}, ask("l", "@two"),
		ask("k", "5/1h", door.Option{Name: "FORCE"}, cost(cell.MaxCost)),
		ask("m", "9/1h", door.Option{Name: "LEASE", N: 500}, door.Option{Name: "ID", Text: "a"}),
		ask("n", "9/1h", door.Option{Name: "RESERVE", N: 7}))
	if want := "2 3; 0 3; 3 0; 0 0; 1 4; ERR nothing was taken: a limit counts to 9007199254740991, and flows back in 292 years at most; " +
		"1 8; 1 8; "; err != nil || got != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	seen := p.send("")
	for _, line := range []string{
		`"CL.TAKE" "k" "5/1h" "COST" "2"`, `"CL.TAKE" "k" "5/1h" "COST" "9" "UPTO"`,
		`"CL.MTAKE" "2" "k" "5/1h" "l" "5/1m" "COST" "1" "PEEK"`,
		`"CL.TAKE" "l" "@two" "COST" "1"`, `"CL.TAKE" "m" "9/1h" "COST" "1" "LEASE" "500" "ID" "a"`,
		`"CL.TAKE" "n" "9/1h" "COST" "1" "RESERVE" "7"`,
	} {
		if !strings.Contains(seen, "[0 192.0.2.1:7] "+line+"\r\n") {
			t.Errorf("no %s in %q", line, seen)
		}
	}
	wrong := (*door.MisreadError)(nil)
	got, err = w.told(t.Context(), ask("k", "5/1h"), door.Ask{Key: "k", Limits: []string{"5/1h", "nonsense"}})
	if !errors.As(err, &wrong) || wrong.Ask != 1 || wrong.Limit != 1 || got != "" || !strings.HasPrefix(err.Error(), "ERR invalid limit") {
		t.Errorf("%q, %v", got, err)
	}
	if _, err = w.told(t.Context(), ask("k", "5/1h", cost(-1))); !errors.As(err, &wrong) || wrong.Limit != -1 || wrong.Ask != 0 {
		t.Errorf("a negative cost: %v", err)
	}
	other := w.connect()
	other.want("AUTH secret", "+OK\r\n")
	if got := other.do("INFO", "commandstats"); !strings.Contains(got, "cmdstat_cl.take:calls=9,") ||
		!strings.Contains(got, "cmdstat_cl.mtake:calls=1,") ||
		!strings.Contains(got, "rejected_calls=0,failed_calls=3\r\n") {
		t.Errorf("%q", got)
	}
	if got, err := w.told(t.Context(), ask("k", "5/1h", door.Option{Name: "GIVE", N: 1})); got != "-1 0; " || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// A caller who is not trusted has the rights of the user default.
func TestTakeByTheDefaultUser(t *testing.T) {
	w := newWorld(t)
	p := w.connect()
	take := func(a door.Ask) string {
		told := ""
		err := w.Door.Take(t.Context(), door.Caller{Addr: "192.0.2.1:7"}, []door.Ask{a}, func(t *door.Taken, err error) {
			if told = fmt.Sprint(err); err == nil {
				told = fmt.Sprint(t.Granted)
			}
		})
		if err != nil {
			return err.Error()
		}
		return told
	}
	if got := take(ask("k", "5/1h")); got != "1" {
		t.Error(got)
	}
	p.want("ACL SETUSER default resetkeys ~k*", "+OK\r\n")
	if got := take(ask("k", "5/1h")); got != "1" {
		t.Error(got)
	}
	got := take(door.Ask{Keys: []string{"k", "other"}, Limits: []string{"5/1h", "5/1h"}})
	if !strings.HasPrefix(got, "NOPERM this user has no permissions to access one of the keys") {
		t.Error(got)
	}
	several := func(asks ...door.Ask) (told string) {
		err := w.Door.Take(t.Context(), door.Caller{Addr: "192.0.2.1:7"}, asks, func(t *door.Taken, err error) {
			if err == nil {
				err = errors.New("taken")
			}
			told += strings.SplitN(err.Error(), " ", 2)[0] + " "
		})
		return fmt.Sprint(told, err)
	}
	both := door.Ask{Keys: []string{"k", "k2"}, Limits: []string{"5/1h", "5/1h"}}
	if got := several(ask("k3", "5/1h"), ask("other", "5/1h"), both, ask("k4", "5/1h")); got != "taken NOPERM taken taken <nil>" {
		t.Errorf("a key of others among several: %s", got)
	}
	p.want("ACL SETUSER default -cl.mtake", "+OK\r\n")
	if got := several(ask("k3", "5/1h"), both, ask("k4", "5/1h")); got != "taken NOPERM taken <nil>" {
		t.Errorf("a command that is forbidden among several: %s", got)
	}
	p.want("ACL SETUSER default -cl.take +cl.mtake", "+OK\r\n")
	if got := several(both); got != "taken <nil>" {
		t.Errorf("a command that is allowed, beside one that is not: %s", got)
	}
	if got := take(ask("k", "5/1h")); got != "NOPERM this user has no permissions to run the 'cl.take' command" {
		t.Error(got)
	}
	if got := p.do("ACL", "LOG"); !strings.Contains(got, "other") || !strings.Contains(got, "cl.take") ||
		!strings.Contains(got, "addr=192.0.2.1:7") {
		t.Errorf("%q", got)
	}
	p.want("CONFIG SET requirepass secret", "+OK\r\n")
	if got := take(ask("k", "5/1h")); got != "NOAUTH the user default needs a password: set --http-token-file, and send the token" {
		t.Error(got)
	}
}

// Where replies wait for the disk, those within the process do, too.
func TestDoNeedsTheDisk(t *testing.T) {
	disk := &sessiontest.Disk{}
	w := newWorldOn(t, disk, t.TempDir())
	if err := w.loadAll(nil); err != nil {
		t.Fatal(err)
	}
	got, err := w.told(t.Context(), ask("k", "5/1h"))
	if got != "1 4; " || err != nil || disk.Syncs.Load() == 0 {
		t.Errorf("%q, %v after %d syncs", got, err, disk.Syncs.Load())
	}
	var lease int64
	leases := []door.Ask{ask("k", "5/1h", door.Option{Name: "LEASE", N: 5000})}
	err = w.Door.Take(t.Context(), inside, leases, func(t *door.Taken, _ error) { lease = t.Lease })
	syncs := disk.Syncs.Load()
	did, wrong := w.Door.ChangeLease(inside, "cl.release", "k", lease)
	if !did || err != nil || wrong != nil || disk.Syncs.Load() == syncs {
		t.Errorf("%v, %v, %v after %d syncs", did, err, wrong, disk.Syncs.Load()-syncs)
	}
	syncs = disk.Syncs.Load()
	if _, err := w.Door.Show(inside, "k"); err != nil || disk.Syncs.Load() != syncs {
		t.Errorf("to look: %v after %d syncs", err, disk.Syncs.Load()-syncs)
	}
	disk.Full.Store(true)
	if _, err = w.told(t.Context(), ask("k", "5/1h")); err == nil || !strings.HasPrefix(err.Error(), "MISCONF ") {
		t.Errorf("%v", err)
	}
	if _, err := w.Door.ChangeLease(inside, "cl.release", "k", 1); err == nil || !strings.HasPrefix(err.Error(), "MISCONF ") {
		t.Errorf("%v", err)
	}
	if _, err := w.Door.Show(inside, "k"); err != nil {
		t.Error(err)
	}
}

// Calls that wait within the process are answered when the server stops. After that no call waits.
func TestTakeWaits(t *testing.T) {
	w := newWorld(t)
	if _, err := w.told(t.Context(), ask("k", "1/1h"), ask("l", "1/1h")); err != nil {
		t.Fatal(err)
	}
	answered := make(chan string)
	p := w.connect()
	p.want("CONFIG SET wait-max 4000000", "+OK\r\n")
	wait := func() {
		told, _ := w.told(context.Background(), ask("k", "1/1h", door.Option{Name: "WAIT", N: 3_600_000}))
		answered <- told
	}
	go wait()
	eventually(t, "wait", func() bool { callers, _ := w.sessions.Port.Waiting(); return callers == 1 })
	ctx, leave := context.WithTimeout(t.Context(), time.Millisecond)
	defer leave()
	_, err := w.told(ctx, ask("l", "1/1h", door.Option{Name: "WAIT", N: 4_000_000}))
	if callers, _ := w.sessions.Port.Waiting(); err != context.DeadlineExceeded || callers != 1 {
		t.Errorf("whose caller has gone: %v, %d wait", err, callers)
	}
	w.sessions.RefuseWaiting()
	for range 2 {
		if got := <-answered; got != "0 0; " {
			t.Errorf("%q", got)
		}
		go wait()
	}
	<-answered
}

// A policy that goes while a call before waits is the error of its own call alone.
func TestAPolicyGoesMeanwhile(t *testing.T) {
	w := newWorld(t)
	p := w.connect()
	p.want("CL.POLICY SET p 5/1h", ":1\r\n")
	p.want("CONFIG SET wait-max 4000000", "+OK\r\n")
	if _, err := w.told(t.Context(), ask("k", "1/1h")); err != nil {
		t.Fatal(err)
	}
	answered := make(chan string)
	go func() {
		waits := ask("k", "1/1h", door.Option{Name: "WAIT", N: 3_600_000})
		told, err := w.told(context.Background(), waits, ask("l", "@p"), ask("m", "5/1h"))
		answered <- fmt.Sprint(told, err)
	}()
	eventually(t, "wait", func() bool { callers, _ := w.sessions.Port.Waiting(); return callers == 1 })
	p.want("CL.POLICY DEL p", ":1\r\n")
	w.sessions.RefuseWaiting()
	if got := <-answered; got != "0 0; NOPOLICY no such policy 'p'; 1 4; <nil>" {
		t.Error(got)
	}
}

package session

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"celld/internal/celldtest"
	"celld/resp/session/sessiontest"
)

const (
	waiters     = 30
	waitingCall = "CL.THROTTLE %s 4 1 86400\r\n"
	waitingPass = "*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:86400\r\n"
)

// slowDisk is a server whose disk is at work, and connections that call meanwhile.
type slowDisk struct {
	*sessiontest.Disk
	t     *testing.T
	srv   *Service
	addr  string
	first sessiontest.Client // its call is in the write that is under way
	conns []sessiontest.Client

	commands int64 // run before any of them called
}

// onSlowDisk runs a test with each carrier.
func onSlowDisk(t *testing.T, test func(d *slowDisk)) {
	disk := &sessiontest.Disk{}
	eachCarrierOn(t, disk, func(t *testing.T, srv *Service, addr string) {
		d := &slowDisk{Disk: disk, t: t, srv: srv, addr: addr, first: sessiontest.Dial(t, addr)}
		d.first.Ask("PING\r\n", "+PONG\r\n")
		for range waiters {
			c := sessiontest.Dial(t, addr)
			c.Ask("PING\r\n", "+PONG\r\n")
			d.conns = append(d.conns, c)
		}
		gate := make(chan error)
		disk.Gate.Store(&gate)
		syncs := disk.Syncs.Load()
		d.commands = srv.Stats.Commands.Load()
		d.first.Send(fmt.Sprintf(waitingCall, "first"))
		eventually(d.t, "a write", func() bool { return disk.Syncs.Load() > syncs })
		for i, c := range d.conns {
			c.Send(fmt.Sprintf(waitingCall, d.key(i)))
		}
		test(d)
	})
}

// someWait waits until calls besides the first are decided, and wait for the next write.
func (d *slowDisk) someWait() {
	d.t.Helper()
	eventually(d.t, "decision besides the first", func() bool { return d.srv.Stats.Commands.Load() >= d.commands+2 })
}

// key is one that nobody else asks for, or one that many do.
func (d *slowDisk) key(i int) string {
	if i%2 == 0 {
		return "shared"
	}
	return fmt.Sprint("key:", i)
}

// ends ends the write that is under way with this error. Those that follow succeed.
func (d *slowDisk) ends(err error) {
	gate := *d.Gate.Swap(nil)
	gate <- err
	close(gate)
}

var eventually = celldtest.Eventually

// passes reads the reply of the i-th connection's first call.
func (d *slowDisk) passes(i int) {
	d.t.Helper()
	if d.key(i) != "shared" {
		d.conns[i].Ask("", waitingPass)
		return
	}
	var got []string // of 15 calls on a key 5 pass
	for range 6 {
		line, err := d.conns[i].ReadString('\n')
		if err != nil {
			d.t.Fatal(err)
		}
		got = append(got, line)
	}
	if got[0] != "*5\r\n" || got[1] != ":0\r\n" && got[1] != ":1\r\n" || got[2] != ":5\r\n" {
		d.t.Fatalf("%q", got)
	}
}

// Connections whose replies wait for the disk may send more, which is answered afterwards and in order; they may close and be
// killed.
func TestConnectionsThatWaitForTheDisk(t *testing.T) {
	onSlowDisk(t, func(d *slowDisk) {
		killer := sessiontest.Dial(t, d.addr)
		killed, closes, half, resets, quits := d.conns[1], d.conns[3], d.conns[5], d.conns[7], d.conns[9]
		killer.Send("CLIENT KILL ADDR " + killed.LocalAddr().String() + "\r\n")
		closes.Close()
		_ = resets.Conn.(*net.TCPConn).SetLinger(0)
		resets.Close()
		half.Send("PING\r\n")
		_ = half.Conn.(*net.TCPConn).CloseWrite()
		quits.Send("PING\r\nQUIT\r\nPING\r\n")
		for i, c := range d.conns[11:] {
			c.Send(fmt.Sprintf("ECHO %d\r\n", i))
			c.Send(strings.Repeat("PING\r\n", 3000))
		}
		d.someWait()
		_ = d.conns[11].SetReadDeadline(time.Now().Add(20 * time.Millisecond)) // more than it takes where it is answered
		if got, err := d.conns[11].Peek(1); err == nil {
			t.Errorf("%q was answered before it was written", got)
		}
		_ = d.conns[11].SetReadDeadline(time.Now().Add(sessiontest.Patience))
		d.ends(nil)
		d.first.Ask("PING\r\n", waitingPass+"+PONG\r\n")
		killer.Ask("PING\r\n", ":1\r\n+PONG\r\n")
		if _, err := io.ReadAll(killed); err != nil {
			t.Error(err)
		}
		half.Ask("", waitingPass+"+PONG\r\n")
		half.WantClosed()
		quits.Ask("", waitingPass+"+PONG\r\n+OK\r\n")
		quits.WantClosed()
		for i, c := range d.conns[11:] {
			d.passes(i + 11)
			echo := fmt.Sprint(i)
			c.Ask("", fmt.Sprintf("$%d\r\n%s\r\n", len(echo), echo)+strings.Repeat("+PONG\r\n", 3000))
		}
		eventually(d.t, "end of those that closed", func() bool { return d.srv.Clients.Count() == 2+waiters-5 })
	})
}

// A write fails while others decide, or have come to: what rests on it is answered so as well, also before a QUIT.
// Those that come when the disk is well again pass.
func TestAWriteThatFailsWhileOthersWait(t *testing.T) {
	t.Parallel()
	onSlowDisk(t, func(d *slowDisk) {
		quits := sessiontest.Dial(t, d.addr)
		quits.Send(fmt.Sprintf(waitingCall, "shared") + "QUIT\r\n")
		d.someWait()
		d.Full.Store(true)
		d.ends(syscall.ENOSPC)
		const misconf = "-MISCONF Errors writing to the AOF file: no space left on device\r\n"
		for _, c := range append(slices.Clone(d.conns), d.first) {
			c.Ask("", misconf)
		}
		quits.Ask("", misconf+"+OK\r\n")
		quits.WantClosed()
		d.Full.Store(false)
		eventually(d.t, "recovery", func() bool { return d.srv.Persist.Refusal() == nil })
		d.first.Ask(fmt.Sprintf(waitingCall, "later"), waitingPass)
	})
}

// A monitor is shown all calls, when they are on the disk.
func TestAMonitorWaitsForTheDisk(t *testing.T) {
	disk := &sessiontest.Disk{}
	eachCarrierOn(t, disk, func(t *testing.T, srv *Service, addr string) {
		m, c := sessiontest.Dial(t, addr), sessiontest.Dial(t, addr)
		m.Ask("MONITOR\r\n", "+OK\r\n")
		const calls = 50
		for i := range calls {
			c.Send(fmt.Sprintf(waitingCall, fmt.Sprint(i)))
			c.Ask("", waitingPass)
		}
		for i := range calls {
			line, err := m.ReadString('\n')
			if want := fmt.Sprintf("\"CL.THROTTLE\" \"%d\" \"4\" \"1\" \"86400\"\r\n", i); err != nil || !strings.HasSuffix(line, want) {
				t.Fatalf("%q, %v, want %q", line, err, want)
			}
		}
	})
}

// What was decided before the server stops is answered, though the disk is at work.
func TestStoppingWhileTheDiskIsAtWork(t *testing.T) {
	onSlowDisk(t, func(d *slowDisk) {
		d.someWait()
		d.srv.RefuseWaiting()
		d.ends(nil)
		d.first.Ask("", waitingPass)
		for i := range d.conns {
			d.passes(i)
		}
	})
}

package session

import (
	"fmt"
	"path"
	"strings"
	"sync"
	"testing"

	"celld/resp/command"
	"celld/resp/door"
	"celld/resp/session/sessiontest"
)

// What cannot be written is answered so, wherever it stands among other commands. What found it out counts; what follows does not run.
func TestADiskThatIsFull(t *testing.T) {
	disk := &sessiontest.Disk{}
	eachCarrierOn(t, disk, func(t *testing.T, srv *Service, addr string) {
		const call, misconf = "CL.THROTTLE k 4 1 86400\r\n", "-MISCONF Errors writing to the AOF file: no space left on device\r\n"
		key := func(text string) string { return strings.ReplaceAll(text, " k ", " "+t.Name()+" ") }
		c := sessiontest.Dial(t, addr)
		c.Ask(key(call), "*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:86400\r\n")
		disk.Full.Store(true)
		for _, round := range []string{"the first that fails", "a known failure"} {
			c.Ask("PING\r\n"+key(call+call+"PING\r\nSET k x\r\n"), "+PONG\r\n"+misconf+misconf+"+PONG\r\n"+misconf)
			c.Ask("MULTI\r\n"+key(call)+"PING\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n"+misconf+"+PONG\r\n")
			c.Ask("CLIENT REPLY SKIP\r\n"+key(call)+"PING\r\n", "+PONG\r\n")
			c.Ask("DEL "+t.Name()+"\r\nSTRLEN "+t.Name()+"\r\n", misconf+":19\r\n")
			last := sessiontest.Dial(t, addr)
			last.Ask(key(call)+"QUIT\r\n", misconf+"+OK\r\n")
			last.WantClosed()
			if srv.Persist.Refusal() == nil {
				t.Fatal(round, "is not known")
			}
		}
		disk.Full.Store(false)
		eventually(t, "write though the disk has space again", func() bool { return srv.Persist.Refusal() == nil })
		c.Ask(key(call), "*5\r\n:0\r\n:5\r\n:1\r\n:-1\r\n") // after one that was answered and two that found it out
	})
}

// A write whose reply is not sent is not answered by what the disk says either, whatever follows it.
func TestWritesWithoutReplyOnADiskThatIsFull(t *testing.T) {
	t.Parallel()
	const call, misconf = "CL.THROTTLE k 4 1 86400\r\n", "-MISCONF Errors writing to the AOF file: no space left on device\r\n"
	long := strings.Repeat("x", 100)
	echo, echoed := sessiontest.Frame("ECHO", long), "$100\r\n"+long+"\r\n"
	for name, test := range map[string]struct{ send, want string }{
		"CLIENT REPLY SKIP": {"CLIENT REPLY SKIP\r\n" + call + echo, echoed},
		"CLIENT REPLY OFF":  {"CLIENT REPLY OFF\r\n" + call + call + "CLIENT REPLY ON\r\n" + echo, "+OK\r\n" + echoed},
		"in a script":       {evalCall("redis.call('CL.THROTTLE', 'k', '4', '1', '86400') return '"+long+"'") + echo, misconf + echoed},
		"before a panic":    {"MULTI\r\nCL.TAKE k 1/1s\r\nBOOM\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n+QUEUED\r\n-" + door.ErrInternal + "\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			disk := &sessiontest.Disk{}
			carrierTest{files: disk, rows: []*command.Row{boomRow}}.run(t, func(t *testing.T, srv *Service, addr string) {
				disk.Full.Store(true)
				defer disk.Full.Store(false)
				sessiontest.Dial(t, addr).Ask(test.send, test.want)
				if srv.Persist.Refusal() == nil {
					t.Error("nothing was written")
				}
			})
		})
	}
}

// A policy or a rule that found out that it cannot be written is in force, and one that follows is not.
func TestSettingsOnADiskThatIsFull(t *testing.T) {
	disk := &sessiontest.Disk{}
	eachCarrierOn(t, disk, func(t *testing.T, srv *Service, addr string) {
		const misconf = "-MISCONF Errors writing to the AOF file: no space left on device\r\n"
		named := func(text string) string { return strings.ReplaceAll(text, "NAME", path.Base(t.Name())) }
		c := sessiontest.Dial(t, addr)
		c.Ask(named("CL.POLICY SET NAME 5/1d\r\nCL.TAKE NAME:k @NAME COST 5\r\n"),
			":1\r\n*7\r\n:0\r\n:5\r\n:0\r\n:-1\r\n:86400000\r\n:5\r\n:0\r\n")
		firsts := []string{"CL.POLICY SET NAME 9/1d RESET\r\n", "CL.POLICY SET NAME:new 9/1d\r\n", "CL.RULE ADD DENY NAME*\r\n"}
		for _, first := range firsts {
			disk.Full.Store(true)
			c.Ask(named(first), misconf) // alone: on a busy machine, what came with it could be in a later round
			c.Ask(named("CL.POLICY SET NAME 7/1d\r\nCL.POLICY SET NAME:late 7/1d\r\nCL.RULE DEL DENY NAME*\r\n"),
				misconf+misconf+misconf)
			disk.Full.Store(false)
			eventually(t, "write though the disk has space again", func() bool { return srv.Persist.Refusal() == nil })
		}
		c.Ask(named("CL.POLICY GET NAME\r\nCL.POLICY GET NAME:new\r\nCL.POLICY GET NAME:late\r\n"),
			"$4\r\n9/1d\r\n$4\r\n9/1d\r\n$-1\r\n")
		c.Ask(named("CL.TAKE NAME:k @NAME PEEK\r\n"), "*7\r\n:1\r\n:0\r\n:0\r\n")
	})
}

// Clients that ask at the same time share the waiting for the disk, and each call counts once.
func TestRepliesThatWaitForTheDisk(t *testing.T) {
	disk := &sessiontest.Disk{}
	eachCarrierOn(t, disk, func(t *testing.T, srv *Service, addr string) {
		const clients, rounds, pipeline = 20, 20, 10
		var wg sync.WaitGroup
		for i := range clients {
			c := sessiontest.Dial(t, addr)
			wg.Go(func() {
				for range rounds {
					c.Ask(strings.Repeat(fmt.Sprintf("CL.THROTTLE client:%d 0 1 86400 0\r\nCL.THROTTLE shared 1000000 1 9000\r\nPING\r\n",
						i), pipeline), "*5\r\n")
					for range pipeline*(6+6+1) - 1 {
						if _, err := c.ReadString('\n'); err != nil {
							t.Error(err)
							return
						}
					}
				}
			})
		}
		wg.Wait()
		c := sessiontest.Dial(t, addr)
		c.Ask("CL.THROTTLE shared 1000000 1 9000 0\r\n", fmt.Sprintf("*5\r\n:0\r\n:1000001\r\n:%d\r\n", 1000001-clients*rounds*pipeline))
	})
}

// A session has written if it has run a write, whether or not that is answered.
func TestWrote(t *testing.T) {
	w := newWorldOn(t, &sessiontest.Disk{}, t.TempDir())
	for send, want := range map[string]bool{
		"PING\r\n":                                     false,
		"GET k\r\n":                                    false,
		"CL.THROTTLE k 4 1 60\r\n":                     true,
		"SET k 5\r\nPING\r\n":                          true,
		"CLIENT REPLY SKIP\r\nSET k 5\r\n":             true,
		"MULTI\r\nSET k 5\r\nEXEC\r\n":                 true,
		"MULTI\r\nPING\r\nEXEC\r\n":                    false,
		evalCall("redis.call('SET', 'k', 5) return 1"): true,
		"CL.TAKE k 1/1s PEEK\r\n":                      false,
		"CL.TAKE k 1/1s PEEK\r\nCL.TAKE k 1/1s\r\n":    true,
		evalCall("return 1"):                           false,
	} {
		p := w.connect()
		p.send(send)
		if got := p.Wrote(); got != want {
			t.Errorf("%q: %v", send, got)
		}
		if p.Confirm(nil, nil); p.Wrote() {
			t.Errorf("%q: still after Confirm", send)
		}
	}
}

// A write that is refused as the disk is full counts as rejected.
func TestRefusedWritesAreCounted(t *testing.T) {
	disk := &sessiontest.Disk{}
	w := newWorldOn(t, disk, t.TempDir())
	if err := w.Persist.Start(func(func() bool) {}, nil); err != nil {
		t.Fatal(err)
	}
	p := w.connect()
	disk.Full.Store(true)
	w.Persist.Begin()
	p.do("SET", "k", "1800000000000000000")
	if err := w.Persist.Commit(); err == nil {
		t.Fatal("written to a full disk")
	}
	for range 2 {
		p.want("SET k 5", "-MISCONF Errors writing to the AOF file: no space left on device\r\n")
	}
	p.want("GET k", "$19\r\n1800000000000000000\r\n")
	got := p.do("INFO", "commandstats")
	if !strings.Contains(got, "cmdstat_set:calls=1,usec=0,usec_per_call=0.00,rejected_calls=2,failed_calls=0\r\n") {
		t.Error(got)
	}
	if got := p.do("INFO", "errorstats"); !strings.Contains(got, "errorstat_MISCONF:count=2\r\n") {
		t.Error(got)
	}
	_ = w.Persist.Close(false)
}

package session

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"celld/persistence/dir"
	"celld/resp/command/connection"
	"celld/resp/gate"
	"celld/resp/session/sessiontest"
	"celld/resp/wire"
)

// isBusy waits until a script has run for so long that others are told.
func isBusy(t *testing.T, srv *Service) {
	t.Helper()
	eventually(t, "busy script", func() bool { return srv.Gate.Has(gate.Busy) })
}

// While a script takes too long, all others are served, on its own loop and on others: by -BUSY, except what may end it.
func TestBusyScript(t *testing.T) {
	carrierTest{settings: busySettings}.run(t, func(t *testing.T, srv *Service, addr string) {
		const others = 8 // so that both loops have some
		var conns []sessiontest.Client
		for range others {
			c := sessiontest.Dial(t, addr)
			c.Ask("PING\r\n", "+PONG\r\n")
			conns = append(conns, c)
		}
		queued, watches := sessiontest.Dial(t, addr), sessiontest.Dial(t, addr)
		queued.Ask("MULTI\r\nPING\r\n", "+OK\r\n+QUEUED\r\n")
		watches.Ask("WATCH k\r\n", "+OK\r\n")
		runs := sessiontest.Dial(t, addr)
		runs.Send(evalCall(endless))
		isBusy(t, srv)
		busy := "-" + errBusy + "\r\n"
		for _, c := range append(conns, sessiontest.Dial(t, addr)) {
			c.Ask("PING\r\nGET k\r\nCL.THROTTLE k 1 1 1\r\nCL.TAKE k 1/1s\r\nCLIENT LIST\r\nINFO\r\nCONFIG GET port\r\nCLIENT KILL TYPE normal\r\nNOSUCH\r\n",
				strings.Repeat(busy, 8)+"-ERR unknown command 'NOSUCH', with args beginning with: \r\n")
			c.Ask(
				evalCall("return 1")+"EVALSHA x 0\r\nSCRIPT LOAD x\r\nSCRIPT EXISTS x\r\nSCRIPT FLUSH\r\nMONITOR\r\nBGSAVE\r\nPUBLISH\r\n",
				strings.Repeat(busy, 7)+"-ERR unknown command 'PUBLISH', with args beginning with: \r\n")
			c.Ask("AUTH x\r\n", "-"+connection.ErrNoPassword+"\r\n")
			c.Ask("HELLO 2 SETNAME\r\n", "-"+fmt.Sprintf(connection.ErrHelloOption, "SETNAME")+"\r\n")
			c.Ask("MULTI\r\nGET k\r\nEXEC\r\n", "+OK\r\n"+busy+"-"+fmt.Sprintf(errExecRejected, strings.TrimPrefix(errBusy, "ERR "))+"\r\n")
			c.Ask("MULTI\r\nDISCARD\r\nWATCH k\r\nUNWATCH\r\nRESET\r\n", "+OK\r\n+OK\r\n+OK\r\n+OK\r\n+RESET\r\n")
		}
		queued.Ask("EXEC\r\nPING\r\n", "-"+fmt.Sprintf(errExecRejected, errBusy)+"\r\n"+busy)
		quits := sessiontest.Dial(t, addr)
		quits.Ask("QUIT\r\n", "+OK\r\n")
		quits.WantClosed()
		half := sessiontest.Dial(t, addr)
		half.Send("PING\r\n")
		closeWrite(half)
		half.Ask("", busy)
		half.WantClosed()
		deaf := sessiontest.Dial(t, addr)
		deaf.Send(strings.Repeat("PING\r\n", 10_000))
		deaf.Close()
		conns[0].Ask("SCRIPT KILL\r\n", "+OK\r\n")
		wantError(runs, errScriptKilled)
		runs.Ask("PING\r\n", "+PONG\r\n")
		for _, c := range conns {
			c.Ask("PING\r\nSCRIPT KILL\r\n", "+PONG\r\n-"+errNotBusy+"\r\n")
		}
		queued.Ask("EXEC\r\n", "-"+errExecNoMulti+"\r\n")
		watches.Ask("MULTI\r\nPING\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n*1\r\n+PONG\r\n")
	})
}

// Replies come in the order of the commands, wherever a busy script stands among them, and what came before it leaves meanwhile.
func TestBusyScriptInAPipeline(t *testing.T) {
	for name, test := range map[string]struct{ raw, before, after string }{
		"between":      {"PING\r\nGET k\r\n" + evalCall(endless) + "PING\r\nECHO x\r\n", "+PONG\r\n$-1\r\n", "+PONG\r\n$1\r\nx\r\n"},
		"many before":  {strings.Repeat("PING\r\n", 20_000) + evalCall(endless) + "PING\r\n", strings.Repeat("+PONG\r\n", 20_000), "+PONG\r\n"},
		"many behind":  {"PING\r\n" + evalCall(endless) + strings.Repeat("PING\r\n", 50_000), "+PONG\r\n", strings.Repeat("+PONG\r\n", 50_000)},
		"more behind":  {"PING\r\n" + evalCall(endless) + strings.Repeat(sessiontest.Frame("ECHO", strings.Repeat("y", 1000)), 500), "+PONG\r\n", strings.Repeat("$1000\r\n"+strings.Repeat("y", 1000)+"\r\n", 500)},
		"SKIP":         {"PING\r\nECHO abc\r\nCLIENT REPLY SKIP\r\n" + evalCall(endless) + "PING\r\n", "", "+PONG\r\n"},
		"OFF and ON":   {"PING\r\nCLIENT REPLY OFF\r\n" + evalCall(endless) + "PING\r\nCLIENT REPLY ON\r\nPING\r\n", "", "+OK\r\n+PONG\r\n"},
		"in EXEC":      {"PING\r\nMULTI\r\nPING\r\n" + evalCall(endless) + "PING\r\nEXEC\r\nPING\r\n", "+PONG\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n+PONG\r\n", "+PONG\r\n+PONG\r\n"},
		"then QUIT":    {"PING\r\n" + evalCall(endless) + "QUIT\r\nPING\r\n", "+PONG\r\n", "+OK\r\n"},
		"then garbage": {"PING\r\n" + evalCall(endless) + "*1\r\n$-2\r\n", "+PONG\r\n", "-" + string(wire.ErrBulkLen) + "\r\n"},
		"two scripts":  {"PING\r\n" + evalCall(endless) + evalCall("return 2"), "+PONG\r\n", ":2\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			o := carrierTest{settings: append([]string{"client-output-buffer-limit", "64mb"}, busySettings...)}
			o.run(t, func(t *testing.T, srv *Service, addr string) {
				c, killer := sessiontest.Dial(t, addr), sessiontest.Dial(t, addr)
				killer.Ask("PING\r\n", "+PONG\r\n")
				var sending sync.WaitGroup
				sending.Go(func() { c.Send(test.raw) })
				c.Ask("", test.before)
				isBusy(t, srv)
				killer.Ask("SCRIPT KILL\r\n", "+OK\r\n")
				switch name {
				case "SKIP":
					c.Ask("", "+PONG\r\n$3\r\nabc\r\n")
				case "OFF and ON":
					c.Ask("", "+PONG\r\n")
				default:
					wantError(c, errScriptKilled)
				}
				c.Ask("", test.after)
				sending.Wait()
				closeWrite(c)
				c.WantClosed()
			})
		})
	}
}

// At maxclients, who comes while a script is busy is refused at once, or has the place of one that left meanwhile.
func TestComingWhileAScriptIsBusy(t *testing.T) {
	disk := &sessiontest.Disk{}
	for name, test := range map[string]struct {
		files dir.FileSystem
		wrote string
	}{
		"that has written nothing":            {},
		"that has written":                    {wrote: "redis.call('SET', 'k', '7') "},
		"that has written nothing, on a disk": {files: disk},
		"that has written, on a disk":         {files: disk, wrote: "redis.call('SET', 'k', '7') "},
	} {
		t.Run(name, func(t *testing.T) {
			o := carrierTest{files: test.files,
				settings: append([]string{"maxclients", "3", "io-threads", "1", "shutdown-timeout", "1"}, busySettings...)}
			o.run(t, func(t *testing.T, srv *Service, addr string) {
				runs, leaves, stays := sessiontest.Dial(t, addr), sessiontest.Dial(t, addr), sessiontest.Dial(t, addr)
				for _, c := range []sessiontest.Client{runs, leaves, stays} {
					c.Ask("PING\r\n", "+PONG\r\n")
				}
				runs.Send(evalCall(test.wrote + endless))
				eventually(t, "busy script", func() bool { r := srv.running.Load(); return r != nil && r.startNS+1e8 < srv.Clock() })
				for range 3 {
					c := sessiontest.Dial(t, addr)
					c.Ask("", fullLine)
					c.WantClosed()
				}
				if test.wrote == "" {
					leaves.Close()
					eventually(t, "place", func() bool {
						c := sessiontest.Dial(t, addr)
						c.Send("PING\r\n")
						line, _ := c.ReadString('\n')
						return line == "-"+errBusy+"\r\n"
					})
					stays.Ask("SCRIPT KILL\r\n", "+OK\r\n")
				}
			})
		})
	}
}

// The peer of a busy script goes away, by half or at once, and the script runs until it is killed.
func TestThePeerOfABusyScript(t *testing.T) {
	for name, leave := range map[string]func(c sessiontest.Client){
		"closes":          func(c sessiontest.Client) { c.Close() },
		"resets":          func(c sessiontest.Client) { _ = c.Conn.(*net.TCPConn).SetLinger(0); c.Close() },
		"closes its half": closeWrite,
		"sends more":      func(c sessiontest.Client) { c.Send(strings.Repeat("PING\r\n", 1000)) },
	} {
		t.Run(name, func(t *testing.T) {
			carrierTest{settings: busySettings}.run(t, func(t *testing.T, srv *Service, addr string) {
				c, killer := sessiontest.Dial(t, addr), sessiontest.Dial(t, addr)
				killer.Ask("PING\r\n", "+PONG\r\n")
				c.Send("PING\r\n" + evalCall(endless))
				isBusy(t, srv)
				leave(c)
				for range 20 {
					killer.Ask("GET k\r\n", "-"+errBusy+"\r\n")
				}
				killer.Ask("SCRIPT KILL\r\n", "+OK\r\n")
				switch name {
				case "closes its half":
					c.Ask("", "+PONG\r\n")
					wantError(c, errScriptKilled)
					c.WantClosed()
				case "sends more":
					c.Ask("", "+PONG\r\n")
					wantError(c, errScriptKilled)
					c.Ask("", strings.Repeat("+PONG\r\n", 1000))
					c.Close()
				}
				eventually(t, "end of the other", func() bool { return srv.Clients.Count() == 1 })
				killer.Ask("PING\r\n", "+PONG\r\n")
			})
		})
	}
}

// A busy script's connection is killed from inside the server: by nobody's command, as those are refused.
func TestABusyScriptsConnectionIsKilled(t *testing.T) {
	carrierTest{settings: busySettings}.run(t, func(t *testing.T, srv *Service, addr string) {
		c, killer := sessiontest.Dial(t, addr), sessiontest.Dial(t, addr)
		killer.Ask("PING\r\n", "+PONG\r\n")
		c.Ask("CLIENT ID\r\n", ":")
		id, err := c.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		c.Send(evalCall(endless))
		isBusy(t, srv)
		for _, c := range srv.Clients.All() {
			if fmt.Sprintf("%d\r\n", c.ID) == id {
				c.Kill()
			}
		}
		for range 20 {
			killer.Ask("GET k\r\n", "-"+errBusy+"\r\n")
		}
		killer.Ask("SCRIPT KILL\r\n", "+OK\r\n")
		eventually(t, "end of the killed one", func() bool { return srv.Clients.Count() == 1 })
		killer.Ask("PING\r\n", "+PONG\r\n")
	})
}

// Where replies wait for the disk, a busy script that has written nothing keeps nobody's: what others were answered before
// it leaves, and what they ask later, too.
func TestABusyScriptKeepsNobodyFromTheDisk(t *testing.T) {
	disk := &sessiontest.Disk{}
	carrierTest{files: disk, settings: busySettings}.run(t, func(t *testing.T, srv *Service, addr string) {
		var conns []sessiontest.Client
		for range 4 {
			conns = append(conns, sessiontest.Dial(t, addr))
		}
		c := sessiontest.Dial(t, addr)
		c.Ask("PING\r\n", "+PONG\r\n")
		for i, other := range conns {
			other.Send(fmt.Sprintf(waitingCall, fmt.Sprint(t.Name(), i)))
		}
		c.Send(fmt.Sprintf(waitingCall, t.Name()) + evalCall(endless) + fmt.Sprintf(waitingCall, t.Name()+"behind"))
		isBusy(t, srv)
		for _, other := range conns {
			line, err := other.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if line == "*5\r\n" { // it came before the script
				other.Ask("", strings.TrimPrefix(waitingPass, line))
			} else if line != "-"+errBusy+"\r\n" {
				t.Fatalf("%q", line)
			}
			other.Ask("PING\r\n", "-"+errBusy+"\r\n")
		}
		conns[0].Ask("SCRIPT KILL\r\n", "+OK\r\n")
		c.Ask("", waitingPass)
		wantError(c, errScriptKilled)
		c.Ask("", waitingPass)
		conns[0].Ask(fmt.Sprintf(waitingCall, t.Name()+"after"), waitingPass)
	})
}

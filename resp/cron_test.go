package resp

import (
	"slices"
	"strings"
	"testing"
	"time"

	"celld/resp/gate"
	"celld/resp/session/sessiontest"
)

// What the cron does each second, and what more often.
func TestTick(t *testing.T) {
	w := newWorld(t, "timeout", "60")
	var told []int64
	w.sessions.Config.OnMemory = func(_, clients int64) { told = append(told, clients>>20) }
	p, idle := w.connect(), w.connect()
	info := func(want string) {
		t.Helper()
		if got := p.do("INFO", "stats"); !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	var last counted
	ticks := func(n int) {
		for i := 1; i <= n; i++ {
			w.tick(nil, i, &last)
		}
	}
	const rates = "instantaneous_ops_per_sec:%\r\n"
	clientOf(w, idle).Unsent.Store(9 << 20)
	for range 7 {
		p.do("ECHO", strings.Repeat("x", 2048))
	}
	w.sessions.Log.WarnLimited("trouble", "n", 1)
	w.sessions.Log.WarnLimited("trouble", "n", 2)
	w.sleepMS(1000)
	ticks(9)
	if strings.Contains(w.log.String(), "n=2") || len(told) > 0 {
		t.Errorf("told %v in less than a second; log %s", told, w.log)
	}
	info(strings.Replace(rates, "%", "0", 1))
	ticks(10)
	info(strings.Replace(rates, "%", "8", 1)) // with INFO
	info("instantaneous_input_kbps:14.")
	info("instantaneous_output_kbps:15.") // with the first INFO
	if !strings.Contains(w.log.String(), "n=2") || !slices.Equal(told, []int64{8}) {
		t.Errorf("told %v; log %s", told, w.log)
	}
	ticks(10)
	info(strings.Replace(rates, "%", "3", 1))
	w.sleepMS(59_000)
	p.do("PING")
	if ticks(10); idle.tr.Wakes != 0 || p.tr.Wakes != 0 { // 60 s are not longer than 60 s
		t.Errorf("%d and %d wakes", idle.tr.Wakes, p.tr.Wakes)
	}
	w.sleepMS(1)
	if ticks(10); idle.tr.Wakes != 1 || p.tr.Wakes != 0 {
		t.Errorf("%d and %d wakes", idle.tr.Wakes, p.tr.Wakes)
	}
	info("clock_steps:0")
	w.ahead += 99e6
	ticks(1)
	info("clock_steps:0")
	w.ahead += 1e6
	ticks(1)
	info("clock_steps:1")
	p.want("MULTI", "+OK\r\n")
	p.want("BGSAVE", "+QUEUED\r\n")
	p.want("EXEC", "*1\r\n+Background saving scheduled\r\n")
	_ = w.sessions.Persist.Start(func(step func() bool) {
		for step() {
		}
	}, nil)
	ticks(1)
	eventually(t, "snapshot", func() bool { return w.sessions.Persist.Status().Saves == 1 })
	if err := w.sessions.Persist.Close(false); err != nil {
		t.Error(err)
	}
}

// A temporary policy ends at the first tick after its time, in the middle of no script.
func TestTheCronEndsPolicies(t *testing.T) {
	w := newWorld(t)
	p := w.connect()
	p.want("CL.POLICY SET p 5/1h,algo=window", ":1\r\n")
	p.want("CL.POLICY SET p 50/1h,algo=window EX 2", ":1\r\n")
	p.want("CL.POLICY TTL p", ":2\r\n")
	p.want("CL.TAKE k @p", "*7\r\n:0\r\n:50\r\n:49\r\n:-1\r\n:3600000\r\n:1\r\n:0\r\n")
	w.sleepMS(1501)
	p.want("CL.POLICY TTL p", ":0\r\n")
	w.sleepMS(498)
	var last counted
	w.tick(nil, 1, &last)
	p.want("CL.POLICY GET p", "$17\r\n50/1h,algo=window\r\n")
	w.sleepMS(1)
	w.sessions.Gate.Set(gate.Busy, true)
	w.tick(nil, 2, &last)
	w.sessions.Gate.Set(gate.Busy, false)
	p.want("CL.POLICY GET p", "$17\r\n50/1h,algo=window\r\n")
	w.tick(nil, 3, &last)
	p.want("CL.POLICY GET p", "$16\r\n5/1h,algo=window\r\n")
	p.want("CL.POLICY TTL p", ":-1\r\n")
	p.want("CL.TAKE k @p", "*7\r\n:0\r\n:5\r\n:3\r\n:-1\r\n:3598000\r\n:1\r\n:0\r\n")
}

// Keys that have expired are removed though nobody asks for them.
func TestCarriersSweep(t *testing.T) {
	eachCarrier(t, func(t *testing.T, srv *Server, addr string) {
		c := sessiontest.Dial(t, addr)
		for range 3 {
			c.Ask("CL.THROTTLE k 0 1 60\r\nCL.TAKE l 1/1m\r\n",
				"*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:60\r\n*7\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:60000\r\n:1\r\n:0\r\n")
			before := srv.sessions.Store.Stats(srv.sessions.Clock()).Expired
			skew(srv, 2*time.Minute)
			eventually(t, "end of both keys", func() bool { return srv.sessions.Store.Stats(srv.sessions.Clock()).Expired == before+2 })
		}
	})
}

// A sweep ends when nothing is left, or its time is up.
func TestSweepEnds(t *testing.T) {
	w := newWorld(t)
	if w.sweep(w.nowNS + 1) {
		t.Error("there is more in an empty store")
	}
	p := w.connect()
	for i := range 20_000 {
		p.do("SET", strings.Repeat("k", i%7)+time.Duration(i).String(), "1790000001000000000")
	}
	w.sleepMS(3_600_000)
	if w.sweep(w.nowNS) {
		t.Error("goes on when its time is up")
	}
	if !w.sweep(w.nowNS + 1) {
		t.Error("ends before all is removed")
	}
}

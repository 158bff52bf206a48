package session

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"celld/resp/bound"
	"celld/resp/command/argument"
	"celld/resp/door"
	"celld/resp/session/sessiontest"
	"celld/store"
	"celld/store/memory"
)

// queued is a Store in which a call with WAIT that is denied waits until a test answers it.
type queued struct {
	memory.Port
	mu      sync.Mutex
	waiters []queuedCall
	left    int // calls whose callers have gone
	leased  map[int64]string
	lastID  int64
}

type queuedCall struct {
	r *store.TakeRequest
	w store.Waker
	a store.Access
}

func queuedWorld(t testing.TB, settings ...string) (*world, *queued) {
	w := newWorld(t, settings...)
	return w, queues(w.Service)
}

func queues(srv *Service) *queued {
	q := &queued{Port: memory.Port{Store: srv.Store}, leased: map[int64]string{}}
	srv.Limiter, srv.Port, srv.Keys = q, q, q
	return q
}

func (q *queued) TakeBatch(reqs []store.TakeRequest, a store.Access, w store.Waker) bool {
	r := &reqs[0]
	if r.Terms == nil {
		return q.Store.TakeBatch(reqs, a, w)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.take(r, a); r.Taken.Limited && w != nil && r.Terms.Mode == store.Wait {
		q.waiters = append(q.waiters, queuedCall{r, w, a})
		return false
	}
	return true
}

// take decides as for a call that does not wait.
func (q *queued) take(r *store.TakeRequest, a store.Access) {
	terms := r.Terms
	r.Terms = nil
	one := []store.TakeRequest{*r}
	q.Store.TakeBatch(one, a, nil)
	r.Taken, r.Err = one[0].Taken, one[0].Err
	if r.Terms = terms; terms.LeaseNS > 0 && !r.Taken.Limited {
		q.lastID++
		terms.Lease = q.lastID
		q.leased[terms.Lease] = string(r.Calls[0].Key)
	}
}

// answer looks again for the first that waits, and answers it whatever that says.
func (q *queued) answer() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiters) > 0 {
		one := q.waiters[0]
		q.waiters = q.waiters[1:]
		q.take(one.r, one.a)
		one.w.Wake()
	}
}

func (q *queued) Leave(r *store.TakeRequest, why error) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := slices.IndexFunc(q.waiters, func(c queuedCall) bool { return c.r == r })
	if at < 0 {
		return false
	}
	w := q.waiters[at].w
	q.waiters = slices.Delete(q.waiters, at, at+1)
	switch why {
	case nil:
		q.left++
		return true
	case store.ErrRefused:
		r.Taken.Limited = true
	default:
		r.Err = why
	}
	w.Wake()
	return true
}

func (q *queued) Release(key []byte, id int64, a store.Access) (bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	held, ok := q.leased[id]
	if ok = ok && held == string(key); ok {
		delete(q.leased, id)
	}
	return ok, nil
}

func (q *queued) Waiting() (callers, keys int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return int64(len(q.waiters)), int64(len(q.waiters))
}

func (q *queued) leases() []int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Sorted(maps.Keys(q.leased))
}

const (
	waitCall    = "CL.TAKE k 1/1h,algo=window WAIT 60000"
	takenReply  = "*7\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:3600000\r\n:1\r\n:0\r\n"
	deniedReply = "*7\r\n:1\r\n:1\r\n:0\r\n:3600000\r\n:3600000\r\n:0\r\n:0\r\n"
)

// A call waits: what comes behind it is answered afterwards, and others see that it waits.
func TestACallWaits(t *testing.T) {
	w, q := queuedWorld(t)
	p, other := w.connect(), w.connect()
	p.want(waitCall, takenReply)
	if got := p.send(waitCall + "\r\nPING\r\n"); got != "" || !p.tr.Paused {
		t.Fatalf("%q, paused %v", got, p.tr.Paused)
	}
	got := other.do("CLIENT", "LIST", "ID", fmt.Sprint(p.client.ID))
	if !strings.Contains(got, " flags=b ") || !strings.Contains(got, "cmd=cl.take") {
		t.Error(got)
	}
	if got := other.do("INFO", "clients"); !strings.Contains(got, "blocked_clients:1\r\nwaiting_keys:1\r\n") {
		t.Error(got)
	}
	w.sleepMS(7_000)
	other.want("CL.GIVE k 1/1h,algo=window 1", ":1\r\n")
	q.answer()
	if got := p.send(""); got != strings.Replace(takenReply, "3600000", "3593000", 1)+"+PONG\r\n" && got != takenReply+"+PONG\r\n" {
		t.Errorf("%q", got)
	}
	if got := other.do("INFO", "clients"); !strings.Contains(got, "blocked_clients:0\r\nwaiting_keys:0\r\n") {
		t.Error(got)
	}
	if got := other.do("CLIENT", "LIST", "ID", fmt.Sprint(p.client.ID)); !strings.Contains(got, " flags=N ") {
		t.Error(got)
	}
	if got := other.do("SLOWLOG", "GET"); got != "*0\r\n" {
		t.Errorf("the wait is in the slow log: %q", got)
	}
}

// CLIENT UNBLOCK ends a wait, as over or with an error, and what comes behind is answered.
func TestClientUnblock(t *testing.T) {
	w, _ := queuedWorld(t)
	p, other := w.connect(), w.connect()
	id := fmt.Sprint(p.client.ID)
	p.want(waitCall, takenReply)
	other.want("CLIENT UNBLOCK "+id, ":0\r\n")
	for how, want := range map[string]string{"": deniedReply, " TIMEOUT": deniedReply, " error": "-" + door.ErrUnblocked + "\r\n"} {
		p.send(waitCall + "\r\nPING\r\n")
		other.want("CLIENT UNBLOCK "+id+how, ":1\r\n")
		other.want("CLIENT UNBLOCK "+id+how, ":0\r\n")
		if got := p.send(""); got != want+"+PONG\r\n" {
			t.Errorf("%q: %q", how, got)
		}
	}
	if got := other.do("INFO", "errorstats"); !strings.Contains(got, "errorstat_UNBLOCKED:count=1") {
		t.Error(got)
	}
}

// Nothing waits in a transaction or a script.
func TestWaitInTransactionsAndScripts(t *testing.T) {
	w, q := queuedWorld(t)
	p := w.connect()
	p.want(waitCall, takenReply)
	p.want("MULTI", "+OK\r\n")
	p.want(waitCall, "+QUEUED\r\n")
	p.want("EXEC", "*1\r\n"+deniedReply)
	if got := p.do("EVAL", "return redis.call('CL.TAKE', 'k', '1/1h,algo=window', 'WAIT', 60000)", "0"); got != deniedReply {
		t.Errorf("%q", got)
	}
	if n, _ := q.Waiting(); n != 0 || p.tr.Paused {
		t.Errorf("%d wait", n)
	}
}

// A session that goes while it waits leaves the queue. Where it was granted at that moment, that flows back.
func TestASessionGoesWhileItWaits(t *testing.T) {
	w, q := queuedWorld(t)
	other := w.connect()
	for how, end := range map[string]func(*peer){
		"closed": func(p *peer) { p.Closed() },
		"killed": func(p *peer) { p.client.Kill(); p.Serve(nil); p.Closed() },
		"broken": func(p *peer) { p.borrow(); p.broken(); p.Closed() },
	} {
		for _, granted := range []bool{false, true} {
			for _, lease := range []string{"", " LEASE 1000", " LEASE 1000 BIND ID x"} {
				other.do("DEL", "k")
				other.want("CL.TAKE k 1/1h,algo=window", takenReply)
				p := w.connect()
				p.send("CL.TAKE k 1/1h,algo=window WAIT 60000" + lease + "\r\nPING\r\n")
				q.left = 0
				if granted {
					other.want("CL.GIVE k 1/1h,algo=window 1", ":1\r\n")
					q.answer()
				}
				if end(p); granted == (q.left == 1) {
					t.Errorf("%s, granted %v:%s: %d have left", how, granted, lease, q.left)
				}
				if granted && lease == "" {
					other.want("CL.GIVE k 1/1h,algo=window 1", ":0\r\n") // it is there already
				}
				if n, _ := q.Waiting(); n != 0 || len(q.leases()) > 0 {
					t.Errorf("%s, granted %v:%s: %d wait, leases %v", how, granted, lease, n, q.leases())
				}
			}
		}
	}

	p := w.connect()
	p.send("CL.TAKE k2 1/1h\r\nCL.TAKE k2 1/1h WAIT 60000 LEASE 1000 ID mine\r\n")
	other.do("DEL", "k2")
	q.answer()
	if p.Closed(); len(q.leases()) != 1 {
		t.Errorf("%v: a lease with a name is there for who comes back", q.leases())
	}
}

// Whether the answer or the end comes first, nothing is held afterwards.
func TestAnswersThatMeetTheEnd(t *testing.T) {
	w, q := queuedWorld(t)
	for i := range 2000 {
		p, key := w.connect(), fmt.Sprint("key", i)
		options := ""
		if i%2 == 0 {
			options = " LEASE 1000"
		}
		p.send("CL.TAKE " + key + " 1/1h,algo=window\r\n")
		p.send("CL.TAKE " + key + " 1/1h,algo=window WAIT 60000" + options + "\r\n")
		q.Give([]byte(key), must(argument.ParseLiteral([]byte("1/1h,algo=window"), 1)), nil, 1, store.Access{NowNS: w.nowNS})
		var both sync.WaitGroup
		both.Go(q.answer)
		both.Go(p.Closed)
		both.Wait()
		what := func() string {
			return fmt.Sprint(len(q.leases()), q.Len(w.nowNS))
		}
		eventually(t, "end of lease", func() bool { return len(q.leases()) == 0 })
		if i%2 == 1 {
			other := w.connect()
			eventually(t, "room", func() bool {
				return strings.HasPrefix(other.do("CL.TAKE", key, "1/1h,algo=window", "PEEK"), "*7\r\n:0\r\n")
			})
			other.Closed()
		}
		if n, _ := q.Waiting(); n != 0 {
			t.Fatal(what())
		}
	}
}

func must[T any](v T, problem string) *T {
	if problem != "" {
		panic(problem)
	}
	return &v
}

// Leases with BIND end with their session, however it ends, and those that it has ended itself are forgotten.
func TestBoundLeases(t *testing.T) {
	for how, end := range map[string]func(*peer){
		"closed": func(p *peer) { p.Closed() },
		"RESET":  func(p *peer) { p.want("RESET", "+RESET\r\n") },
		"QUIT":   func(p *peer) { p.want("QUIT", "+OK\r\n"); p.Closed() },
		"broken": func(p *peer) { p.borrow(); p.broken(); p.Closed() },
	} {
		w, q := queuedWorld(t)
		p, other := w.connect(), w.connect()
		for range 3 {
			p.do("CL.TAKE", "k", "9/1h", "LEASE", "60000", "BIND")
		}
		p.do("CL.TAKE", "k", "9/1h", "LEASE", "60000")
		other.do("CL.TAKE", "k", "9/1h", "LEASE", "60000", "BIND")
		p.want("CL.RELEASE k 2", ":1\r\n")
		p.want("CL.RELEASE k 2", ":0\r\n")
		if held := p.client.BoundBytes.Load(); held != 2*(bound.LeaseBytes+1) {
			t.Errorf("%s: %d bytes for two leases", how, held)
		}
		if end(p); !slices.Equal(q.leases(), []int64{4, 5}) || p.client.BoundBytes.Load() != 0 {
			t.Errorf("%s: %v are left, want 4 and 5", how, q.leases())
		}
	}
}

// A session keeps so many bound leases and no more. Those that have ended make room.
func TestBoundLeasesAreBounded(t *testing.T) {
	w, _ := queuedWorld(t)
	p := w.connect()
	long := strings.Repeat("x", 60_000)
	call := []string{"CL.TAKE", long, "100/1h", "LEASE", "1000", "BIND"}
	for i := 0; ; i++ {
		if i > 100 {
			t.Fatal("no bound")
		}
		if got := p.do(call...); strings.HasPrefix(got, "-") {
			if got != "-"+errBound+"\r\n" || i < 10 {
				t.Errorf("%d: %q", i, got)
			}
			break
		}
	}
	before := p.do("CL.TAKE", long, "100/1h", "PEEK")
	p.do(call...)
	if got := p.do("CL.TAKE", long, "100/1h", "PEEK"); got != before {
		t.Errorf("spent: %q, %q", before, got)
	}
	if held := p.client.Bytes(); held < bound.MaxBytes/2 || held > 2*bound.MaxBytes {
		t.Errorf("%d bytes", held)
	}
	w.sleepMS(1001)
	if got := p.do(call...); strings.HasPrefix(got, "-") || p.client.BoundBytes.Load() != int64(bound.LeaseBytes+len(long)) {
		t.Errorf("%.100q, %d bytes are kept", got, p.client.BoundBytes.Load())
	}
}

// A session that waits is not idle.
func TestWaitingIsNotIdle(t *testing.T) {
	w, q := queuedWorld(t, "timeout", "1")
	p := w.connect()
	p.send(waitCall + "\r\n" + waitCall + "\r\n")
	w.sleepMS(5000)
	if p.look(w); p.tr.Closed {
		t.Fatal("closed as idle")
	}
	q.answer()
	if got := p.send(""); !strings.HasPrefix(got, "*7\r\n:1\r\n") {
		t.Errorf("%q", got)
	}
}

// onQueues runs a test with each carrier.
func onQueues(t *testing.T, test func(t *testing.T, srv *Service, q *queued, addr string)) {
	carrierTest{prepare: func(srv *Service) { queues(srv) }}.run(t, func(t *testing.T, srv *Service, addr string) {
		test(t, srv, srv.Limiter.(*queued), addr)
	})
}

// waitsFor waits until n calls wait.
func (q *queued) waitsFor(t *testing.T, n int64) {
	t.Helper()
	eventually(t, fmt.Sprint("queue of ", n), func() bool { have, _ := q.Waiting(); return have == n })
}

// A client that goes while it waits is noticed at once, whether it resets the connection or closes its half, and whatever it has
// sent before: redis-server frees such a client in BLPOP. One that stays is answered, with what it has sent meanwhile.
func TestClientsThatGoWhileTheyQueue(t *testing.T) {
	onQueues(t, func(t *testing.T, srv *Service, q *queued, addr string) {
		other := sessiontest.Dial(t, addr)
		other.Ask("CL.TAKE k 1/24h,algo=window\r\n", "*7\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:86400000\r\n:1\r\n:0\r\n")
		conns := map[string]sessiontest.Client{}
		const call = "CL.TAKE k 1/24h,algo=window WAIT 60000\r\n"
		for i, how := range []string{"half", "halfWithMore", "closes", "resets", "killed", "stays", "quits"} {
			c := sessiontest.Dial(t, addr)
			conns[how] = c
			more := map[string]string{"halfWithMore": strings.Repeat("PING\r\n", 3_000), "stays": "PING\r\n",
				"quits": "QUIT\r\nPING\r\n"}[how]
			c.Send(call + more)
			q.waitsFor(t, int64(i+1))
		}
		for _, how := range []string{"half", "halfWithMore"} {
			_ = conns[how].Conn.(*net.TCPConn).CloseWrite()
		}
		conns["closes"].Close()
		_ = conns["resets"].Conn.(*net.TCPConn).SetLinger(0)
		conns["resets"].Close()
		other.Ask("CLIENT KILL ADDR "+conns["killed"].LocalAddr().String()+"\r\n", ":1\r\n")
		q.waitsFor(t, 2)
		conns["half"].WantClosed()
		eventually(t, "end of them", func() bool { return srv.Clients.Count() == 3 })
		if q.left != 5 {
			t.Errorf("%d have left", q.left)
		}
		conns["stays"].Send("ECHO hi\r\n")
		q.answer()
		q.answer()
		for _, how := range []string{"stays", "quits"} {
			line, err := conns[how].ReadString('\n')
			if err != nil || line != "*7\r\n" {
				t.Fatalf("%s: %q, %v", how, line, err)
			}
			for range 7 {
				_, _ = conns[how].ReadString('\n')
			}
		}
		conns["stays"].Ask("", "+PONG\r\n$2\r\nhi\r\n")
		conns["quits"].Ask("", "+OK\r\n")
		conns["quits"].WantClosed()
	})
}

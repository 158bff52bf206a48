package link

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"celld/internal/celldtest"
)

// connecting is a Store without a connection yet, in a bubble, and the settings by which it connects to an engine.
type connecting struct {
	*Link
	e       *celldtest.Ailing
	by      rueidis.ClientOption
	told    lines
	first   chan string
	opened  chan struct{}
	over    atomic.Bool
	refused atomic.Pointer[string] // why there is no connection; nil: there is
	dials   atomic.Int32
}

func newConnecting(t *testing.T) *connecting {
	t.Helper()
	c := &connecting{Link: newLink(Options{}), first: make(chan string), opened: make(chan struct{})}
	engine, p := celldtest.InPipes(t)
	c.e = engine
	c.log, c.name = c.told.log(), "engine"
	c.by = rueidis.ClientOption{
		InitAddress: []string{"pipe"}, DisableCache: true, DisableRetry: true, PipelineMultiplex: -1, ForceSingleClient: true, SelectDB: 3,
		DialCtxFn: func(ctx context.Context, to string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
			c.dials.Add(1)
			if why := c.refused.Load(); why != nil {
				return nil, &dialError{errors.New(*why)}
			}
			conn, err := p.Dial(ctx, to)
			if err != nil {
				return nil, err
			}
			c.open.Add(1)
			return &openConn{Conn: conn, open: &c.open}, nil
		},
	}
	return c
}

func (c *connecting) refuse(why string) { c.refused.Store(&why) }

func (c *connecting) start() {
	go func() {
		c.keepConnecting(c.by, c.first, c.opened)
		c.over.Store(true)
	}()
}

// attempts waits for so many, and returns how many there were.
func (c *connecting) attempts(n int) int {
	before := c.dials.Load()
	celldtest.Pass(time.Duration(n) * connectPause)
	return int(c.dials.Load() - before)
}

func (c *connecting) said(what string) int { return strings.Count(c.told.String(), what) }

// An engine is connected to in the background, again and again. The log tells why not where that is another reason, and what is connected
// to at last is looked at until the Store is closed.
func TestConnectingGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConnecting(t)
		c.refuse("nobody is there")
		c.start()
		if why := <-c.first; why != "" {
			t.Errorf("nobody is there yet, and that is no mistake: %q", why)
		}
		close(c.opened)
		for i, step := range []struct {
			is   func()
			away string
		}{
			{func() {}, "the engine cannot be reached: nobody is there"},
			{func() { c.refuse("no way") }, "the engine cannot be reached: no way"},
			{func() {
				c.refused.Store(nil)
				c.e.Answers("-ERR DB index is out of range\r\n")
			}, "the engine does not have that many databases"},
			{func() { c.e.Does(map[string]string{"INFO": bulk("celld_version:1\r\n")}) }, itself},
		} {
			step.is()
			if n := c.attempts(3); n != 3 || c.Away() == nil || c.Away().Error() != step.away ||
				c.said(`"msg":"the engine is away","store":"engine","why":"`+step.away+`"`) != 1 {
				t.Errorf("%d: %d attempts, away: %v, the log says\n%s", i, n, c.Away(), c.told.String())
			}
			if c.open.Load() != 0 || c.client.Load() != nil || c.said("\n") != i+1 {
				t.Errorf("%d: %d are open, the log says\n%s", i, c.open.Load(), c.told.String())
			}
		}
		c.e.Answers(":1\r\n")
		n := c.attempts(9)
		if n != 1 || c.Away() != nil || c.said(`"msg":"connected to the engine","store":"engine","mode":"standalone"`) != 1 ||
			c.client.Load() == nil || c.said("\n") != 5 {
			t.Errorf("%d attempts, away: %v, the log says\n%s", n, c.Away(), c.told.String())
		}
		if n := len(c.e.Probes()); n < 3 || c.over.Load() {
			t.Errorf("%d looks, ended: %v", n, c.over.Load())
		}
		c.Close()
		if synctest.Wait(); !c.over.Load() || c.open.Load() != 0 || c.Link.ctx.Err() == nil {
			t.Errorf("ended: %v, %d are open", c.over.Load(), c.open.Load())
		}
	})
}

// A mistake ends the connecting while Open waits for it. Afterwards it may be mended.
func TestAMistakeEndsConnecting(t *testing.T) {
	for _, waits := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c := newConnecting(t)
			c.e.Answers("-ERR DB index is out of range\r\n")
			if !waits {
				close(c.opened)
			}
			c.start()
			if waits {
				if why := <-c.first; why != "the engine does not have that many databases" {
					t.Errorf("%q", why)
				}
			}
			if n := c.attempts(3); (n == 0) != waits || c.over.Load() != waits || c.Away() == nil || (c.said("\n") == 0) != waits {
				t.Errorf("Open waits: %v; %d more attempts, ended: %v, away: %v", waits, n, c.over.Load(), c.Away())
			}
			c.stop()
			if n := c.attempts(3); n != 0 || !c.over.Load() {
				t.Errorf("it is closed, and tries %d times, ended: %v", n, c.over.Load())
			}
		})
	}
}

// Where a connection with TLS is lost, the node is asked why, and no other time.
func TestWhoIsAskedForARefusal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	for _, test := range []struct {
		name    string
		secure  bool
		answer  string
		refused string
		asks    int64
	}{
		{"lost", true, "close", "", 1}, {"lost without TLS", false, "close", "", 0}, {"not connected", true, ":1\r\n", "no way", 0},
		{"a mistake", true, "-ERR DB index is out of range\r\n", "", 0}, {"nothing wrong", true, ":1\r\n", "", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newConnecting(t)
			c.e.Answers(test.answer)
			c.address.Unix = true
			c.by.InitAddress = []string{path}
			if test.secure {
				c.by.TLSConfig = &tls.Config{}
			}
			if test.refused != "" {
				c.refuse(test.refused)
			}
			c.start()
			<-c.first
			if n := c.made.Load(); n != test.asks {
				t.Errorf("%s: it is asked %d times", test.name, n)
			}
			c.stop()
			close(c.opened)
			synctest.Wait()
			if !c.over.Load() || c.open.Load() != 0 {
				t.Errorf("%s: it has ended: %v, %d connections are open", test.name, c.over.Load(), c.open.Load())
			}
		})
	}
}

// A Store that is closed has no connection any more, and is closed once.
func TestClosing(t *testing.T) {
	watched(t, func(t *testing.T, s *Link, e *celldtest.Ailing, _ func() string) {
		if err := s.askFor("k", patient); err != nil || s.open.Load() != 1 {
			t.Fatalf("%v, %d connections are open", err, s.open.Load())
		}
		for range 2 {
			if s.Close(); s.open.Load() != 0 || s.pause(time.Hour) {
				t.Errorf("%d connections are open", s.open.Load())
			}
		}
		if err := s.askFor("k", patient); !isDown(err) {
			t.Errorf("a call then: %v", err)
		}
	})
}

// modal is a client of a Cluster.
type modal struct{ manyNodes }

func (modal) Mode() rueidis.ClientMode { return rueidis.ClientModeCluster }

// Whether an engine is a Cluster is what its client found. The masters of its hash slots are asked for at once.
func TestWhatIsConnectedTo(t *testing.T) {
	watched(t, func(t *testing.T, s *Link, e *celldtest.Ailing, log func() string) {
		e.Does(map[string]string{"CLUSTER SLOTS": clusterSlots("0-16383 a")})
		single := *s.client.Load()
		for mode, client := range map[string]rueidis.Client{"standalone": single, "cluster": modal{manyNodes{single, single.Nodes()}}} {
			s.cluster.Store(mode == "standalone")
			s.client.Store(nil)
			s.setAway("not yet")
			s.pipelines.owners.Store(nil)
			s.connected(client)
			cluster := mode == "cluster"
			if text := log(); s.Cluster() != cluster || (s.pipelines.owners.Load() != nil) != cluster ||
				(*s.client.Load()).Mode() != client.Mode() || s.Away() != nil || !strings.Contains(text, `"mode":"`+mode+`"`) {
				t.Errorf("%s: a Cluster %v, away: %v, the log says %s", mode, s.Cluster(), s.Away(), text)
			}
		}
	})
}

// Until there is a connection, several addresses are a Cluster's, unless they are Sentinels.
func TestTheKindOfAnEngineThatIsAway(t *testing.T) {
	addr := freeAddr(t)
	for query, kind := range map[string]string{"": "standalone", "," + addr: "cluster", "," + addr + "?master=m": "sentinel",
		"?master=m": "sentinel"} {
		s := openLink(t, Options{URL: "redis://" + addr + query})
		if s.Kind() != kind || s.Name() != "redis://"+addr+query || s.Away() == nil {
			t.Errorf("%q: %s, %s", query, s.Kind(), s.Name())
		}
		s.Close()
	}
}

// What a node says of a certificate is heard where nothing is sent. The connection is closed then.
func TestARefusalOfACertificate(t *testing.T) {
	dir := t.TempDir()
	cert, key := certificate(t, dir)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0",
		&tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_ = conn.(*tls.Conn).Handshake()
		conn.Close()
	}()
	s := newLink(Options{})
	o := rueidis.ClientOption{InitAddress: []string{listener.Addr().String()}, TLSConfig: &tls.Config{InsecureSkipVerify: true}}
	if why := mistake(s.refusal(o), address{}); why != "the engine refuses the connection: tls: certificate required" ||
		s.made.Load() != 1 || s.open.Load() != 0 {
		t.Errorf("%q, %d connections were made, %d are open", why, s.made.Load(), s.open.Load())
	}
	listener.Close()
	if err := s.refusal(o); !errors.As(err, new(*dialError)) {
		t.Errorf("nobody listens: %v", err)
	}
}

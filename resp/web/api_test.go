package web

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"celld/internal/celldtest"
)

// pipes is a listener on the loopback in memory, by simulated time.
type pipes struct {
	conns chan net.Conn
	ended chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.ended:
	default:
		close(p.ended)
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

const post = "POST /v1/take HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"

// A call may wait for longer than other requests may take, and gives its place up when its client goes.
func TestACallWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSite(t, Options{})
		ln := &pipes{make(chan net.Conn), make(chan struct{})}
		h := Options{MaxConnections: 10, Inherited: []net.Listener{ln}}
		if err := Serve(s.server, h, logger(&celldtest.LogBuffer{})); err != nil {
			t.Fatal(err)
		}
		dial := func(body string) net.Conn {
			client, server := net.Pipe()
			ln.conns <- server
			fmt.Fprintf(client, post, len(body), body)
			return client
		}
		const take = `{"key":"k","limits":["1/50s"],"mode":"wait","max_ms":60000}`
		begun := time.Now()
		for i, want := range []int{0, 50, 100} {
			if i == 2 {
				gone := dial(take)
				celldtest.Pass(time.Second)
				gone.Close()
				synctest.Wait()
			}
			client := dial(take)
			answer, err := http.ReadResponse(bufio.NewReader(client), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(answer.Body)
			if took := int(time.Since(begun).Seconds()); err != nil || took != want || !strings.HasPrefix(string(body), `{"allowed":true`) {
				t.Errorf("after %d s: %s, %v; want after %d", took, body, err, want)
			}
			client.Close()
		}
		ln.Close()
	})
}

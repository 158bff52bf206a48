package xds

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"celld/internal/celldtest"
	"celld/resp/certs"
	"celld/resp/envoy/message"
)

// asked is a DiscoveryRequest by its fields: those of the node have a dot.
type asked map[string]string

func (a asked) String() string { return fmt.Sprint(map[string]string(a)) }

func readAsked(data []byte) asked {
	a := asked{}
	var read func(prefix string, names map[protowire.Number]string, data []byte) error
	read = func(prefix string, names map[protowire.Number]string, data []byte) error {
		return message.Each(data, func(f message.Field) error {
			switch name := prefix + names[f.Number]; name {
			case "node":
				return read("node.", map[protowire.Number]string{1: "id", 3: "metadata"}, f.Bytes)
			case "error":
				return read("error.", map[protowire.Number]string{1: "code", 2: "message"}, f.Bytes)
			default:
				a[name] = string(f.Bytes)
			}
			return nil
		})
	}
	names := map[protowire.Number]string{1: "version", 2: "node", 3: "names", 4: "type", 5: "nonce", 6: "error"}
	if err := read("", names, data); err != nil {
		panic(err)
	}
	return a
}

// response is a DiscoveryResponse.
func response(version, nonce string) string {
	var b []byte
	for n, text := range map[protowire.Number]string{1: version, 5: nonce} {
		b = protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), text)
	}
	return string(b)
}

// world is a client in simulated time, and a server that does as each stream is told.
type world struct {
	*Client
	t       *testing.T
	streams chan func(s served)
	log     celldtest.LogBuffer
	dials   []time.Duration
	end     func() // of the client
	took    []string
}

// served is a stream as the server has it.
type served struct {
	w http.ResponseWriter
	q *http.Request
}

func (s served) asks() asked {
	var head [5]byte
	if _, err := io.ReadFull(s.q.Body, head[:]); err != nil {
		return asked{"ended": "yes"}
	}
	data := make([]byte, binary.BigEndian.Uint32(head[1:]))
	_, _ = io.ReadFull(s.q.Body, data)
	return readAsked(data)
}

func (s served) answers(data string) {
	_, _ = s.w.Write(celldtest.GRPCMessage(data))
	_ = http.NewResponseController(s.w).Flush()
}

func (s served) ends(code, text string) {
	s.w.Header().Set(http.TrailerPrefix+"Grpc-Status", code)
	s.w.Header().Set(http.TrailerPrefix+"Grpc-Message", text)
}

func inWorld(t *testing.T, do func(w *world)) {
	inWorldOf(t, func(_ *world, server *http.Server) { server.Protocols.SetUnencryptedHTTP2(true) }, do)
}

// inWorldOf is inWorld with what else the server and the client are.
func inWorldOf(t *testing.T, prepare func(w *world, server *http.Server), do func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, streams: make(chan func(served), 10)}
		pipes, began := celldtest.NewPipes(), time.Now()
		server := &http.Server{Protocols: new(http.Protocols), Handler: http.HandlerFunc(func(rw http.ResponseWriter, q *http.Request) {
			if q.URL.Path != path || q.Header.Get("Content-Type") != "application/grpc" || q.Header.Get("Te") != "trailers" {
				t.Error(q.URL, q.Header)
			}
			(<-w.streams)(served{rw, q})
		})}
		w.Client = New(Options{Server: "xds:18000", Headers: http.Header{"Token": {"secret"}}, Most: 1000,
			Dial: func(ctx context.Context, _, addr string) (net.Conn, error) {
				w.dials = append(w.dials, time.Since(began))
				return pipes.Dial(ctx, addr)
			},
			Ask: message.Subscription{Node: "celld", Metadata: map[string]any{"a": "b"}, TypeURL: "type"},
			Take: func(d *message.Discovery, data []byte) ([]any, error) {
				switch {
				case strings.HasPrefix(d.Version, "bad"):
					return nil, errors.New("one: mistake\nanother: too")
				case d.Version == "panic":
					panic("broken")
				}
				w.took = append(w.took, d.Version)
				return []any{"bytes", len(data)}, nil
			},
			Log:      slog.New(slog.NewTextHandler(&w.log, nil)),
			Panicked: func(any, string, ...any) { w.took = append(w.took, "panic") }})
		prepare(w, server)
		if server.TLSConfig != nil {
			server.Protocols.SetHTTP2(true)
			go server.ServeTLS(pipes, "", "")
		} else {
			go server.Serve(pipes)
		}
		ctx, end := context.WithCancel(t.Context())
		w.end = end
		ended := make(chan struct{})
		defer func() {
			end()
			<-ended
			server.Close()
			pipes.Close()
		}()
		go func() {
			defer close(ended)
			w.Run(ctx)
		}()
		do(w)
	})
}

// serve lets the server do something with the next stream, and returns when that has ended.
func (w *world) serve(do func(s served)) {
	done := make(chan struct{})
	w.streams <- func(s served) {
		defer close(done)
		do(s)
	}
	<-done
}

func (w *world) expect(what string, got, want any) {
	w.t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func (w *world) logs(text string) {
	w.t.Helper()
	if !strings.Contains(w.log.String(), text) {
		w.t.Errorf("the log has no %q:\n%s", text, &w.log)
	}
}

// Each world is taken, or refused with the version that stays in force.
func TestTakesAndRefuses(t *testing.T) {
	const node = "node.id:celld node.metadata:\n\b\n\x01a\x12\x03\x1a\x01b"
	const refusal = "map[error.message:one: mistake\nanother: too "
	inWorld(t, func(w *world) {
		w.serve(func(s served) {
			w.expect("header", s.q.Header.Get("Token"), "secret")
			w.expect("the first", s.asks(), "map["+node+" type:type]")
			s.answers(response("bad 0", "n0"))
			w.expect("after the first, which is wrong", s.asks(), refusal+node+" nonce:n0 type:type]")
			s.answers(response("v1", "n1"))
			w.expect("after the second", s.asks(), "map["+node+" nonce:n1 type:type version:v1]")
			w.expect("connected", w.Connected(), true)
			s.answers(response("bad 2", "n2"))
			w.expect("after a wrong one", s.asks(), refusal+node+" nonce:n2 type:type version:v1]")
			s.answers(response("panic", ""))
			w.expect("after a panic", s.asks(), "map[error.message:a fault in celld "+node+" type:type version:v1]")
			s.answers(response("v1", ""))
			w.expect("after the same, without a nonce", s.asks(), "map["+node+" type:type version:v1]")
		})
		w.expect("took", w.took, "[v1 panic v1]")
		taken, refused := w.Counts()
		w.expect("counts", []int64{taken, refused}, "[2 3]")
		w.logs(`msg="a configuration is taken" server=xds:18000 version=v1 bytes=8`)
		w.logs(`msg="a configuration is refused, and the one before stays" server=xds:18000 version="bad 2" ` +
			`error="one: mistake (and 1 more)"`)
		synctest.Wait()
		w.expect("connected", w.Connected(), false)
		w.serve(func(s served) { w.expect("on the next stream", s.asks(), "map["+node+" type:type]") })
	})
}

// A client ends while its stream is open, in which nothing comes.
func TestEndsAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.serve(func(s served) {
			s.asks()
			s.answers(response("v1", "n1"))
			s.asks()
			began := time.Now()
			w.end()
			<-s.q.Context().Done()
			if took := time.Since(began); took > time.Second {
				t.Errorf("it takes %s", took)
			}
		})
	})
}

// A server that is away is asked less and less often, until it answers.
func TestPauses(t *testing.T) {
	inWorld(t, func(w *world) {
		end := func(s served) { s.ends("14", "not%20now") }
		for range 10 {
			w.serve(end)
		}
		pause := leastPause
		for i, at := range w.dials[1:] {
			took := at - w.dials[i]
			if took < pause*3/4 || took > pause*5/4 {
				t.Errorf("pause %d took %s, want %s", i, took, pause)
			}
			pause = min(2*pause, mostPause)
		}
		w.logs(`msg="the xDS server is away, and the configuration stays as it is" server=xds:18000 error="the server has ended the stream with code 14: not now"`)
		w.serve(func(s served) {
			s.asks()
			s.answers(response("v1", "n"))
			s.asks()
		})
		w.serve(end)
		n := len(w.dials)
		if took := w.dials[n-1] - w.dials[n-2]; took > 2*time.Second {
			t.Errorf("after an answer the pause is %s", took)
		}
	})
}

// A server that sends what was refused again and again does not keep anybody busy.
func TestRefusesSlowly(t *testing.T) {
	inWorld(t, func(w *world) {
		w.serve(func(s served) {
			for began := time.Now(); time.Since(began) < 10*time.Second && s.asks()["ended"] == ""; {
				s.answers(response("bad", "n"))
			}
		})
		if _, refused := w.Counts(); refused < 90 || refused > 101 {
			t.Errorf("%d are refused in 10 s", refused)
		}
	})
}

// How a stream ends that is no stream of gRPC, or brings what is too large or damaged.
func TestEnds(t *testing.T) {
	for want, do := range map[string]func(s served){
		"the server answers 404 Not Found": func(s served) { http.NotFound(s.w, s.q) },
		"the server has ended the stream with code 12: unknown service": func(s served) {
			s.w.Header().Set("Grpc-Status", "12")
			s.w.Header().Set("Grpc-Message", "unknown service")
		},
		"the server has ended the stream with code 0: it says no reason":                 func(s served) { s.ends("0", "%zz") },
		"a configuration has 1001 bytes, and 1000 may come: see --envoy-xds-max-message": func(s served) { s.answers(strings.Repeat("x", 1001)) },
		"the server compresses, which nobody has asked for":                              func(s served) { _, _ = s.w.Write([]byte("\x01\x00\x00\x00\x00")) },
		"unexpected EOF": func(s served) { _, _ = s.w.Write([]byte("\x00\x00\x00\x00\x05x")) },
		"read a DiscoveryResponse: the message is cut off or damaged": func(s served) { s.answers("\xff") },
	} {
		inWorld(t, func(w *world) {
			w.serve(do)
			celldtest.Pass(0)
			w.logs(fmt.Sprintf("error=%q", want))
			_, refused := w.Counts()
			w.expect(want, refused > 0, strings.Contains(want, "damaged"))
		})
	}
}

// Each connection has the certificates that there are then, of the client and of who vouches for the server.
func TestTLS(t *testing.T) {
	var authority *celldtest.Authority
	files := certs.Files{Cert: filepath.Join(t.TempDir(), "cert"), Key: filepath.Join(t.TempDir(), "key")}
	prepare := func(w *world, server *http.Server) {
		authority = celldtest.NewAuthority(w.t)
		cert, key := authority.Sign("xds", &x509.Certificate{DNSNames: []string{"xds"}})
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		trusts := authority.Client("", "").RootCAs
		server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusts,
			NextProtos: []string{"h2"}}
		files.CA = authority.File
		w.TLS = func() (*tls.Config, error) { return files.Client("xds") }
	}
	inWorldOf(t, prepare, func(w *world) {
		celldtest.Pass(10 * time.Second)
		w.logs("read the certificate: open " + files.Cert)
		for _, name := range []string{"one", "two"} {
			cert, key := authority.Sign(name, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
			celldtest.WriteFile(t, celldtest.ReadFile(t, cert), files.Cert)
			celldtest.WriteFile(t, celldtest.ReadFile(t, key), files.Key)
			w.serve(func(s served) { w.expect("the client", s.q.TLS.PeerCertificates[0].Subject.CommonName, name) })
		}
	})
}

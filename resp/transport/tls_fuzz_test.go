package transport

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"
)

// mangled changes what a client sends. Of each record, the script has what is done to it, and a number for that.
type mangled struct {
	*net.TCPConn
	script []byte
	held   []byte // what the next record overtakes
}

func (m *mangled) next() byte {
	if len(m.script) == 0 {
		return 0
	}
	b := m.script[0]
	m.script = m.script[1:]
	return b
}

func (m *mangled) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(len(rest), 5+int(rest[3])<<8+int(rest[4]))
		before := m.held
		m.held = nil
		if _, err := m.TCPConn.Write(append(m.mangle(bytes.Clone(rest[:n])), before...)); err != nil {
			return 0, err
		}
		rest = rest[n:]
	}
	return len(p), nil
}

const (
	asItIs = iota
	flipped
	cutShort
	twice
	later
	ofWrongLength
	ofOtherKind
	inPieces
	slowly
	afterAlert
	afterHandshakeMessage
	afterCipherChange
	afterEmptyOnes
	afterNoise
	kinds
)

// mangle returns what is sent in place of a record.
func (m *mangled) mangle(record []byte) []byte {
	kind := m.next() % kinds
	if kind == asItIs {
		return record
	}
	by := m.next()
	at := int(by) * len(record) / 256
	switch kind {
	case flipped:
		record[at] ^= 1 << (by % 8)
	case cutShort:
		record = record[:at]
	case twice:
		record = append(record, record...)
	case later: // behind the next
		m.held, record = record, nil
	case ofWrongLength:
		record[3], record[4] = by, m.next()
	case ofOtherKind:
		record[0] = by
	case inPieces: // of up to 16 bytes, which is right as long as nothing is encrypted
		var out []byte
		for part := record[5:]; len(part) > 0; {
			n := min(len(part), 1+int(by%16))
			out = append(append(out, record[0], record[1], record[2], 0, byte(n)), part[:n]...)
			part = part[n:]
		}
		record = out
	case slowly:
		_, _ = m.TCPConn.Write(record[:at])
		record = record[at:]
	case afterAlert:
		record = append([]byte{21, 3, 3, 0, 2, by % 3, m.next()}, record...)
	case afterHandshakeMessage: // as whoever renegotiates
		record = append([]byte{22, 3, 3, 0, 4, by, m.next(), 0, 0}, record...)
	case afterCipherChange:
		record = append([]byte{20, 3, 3, 0, 1, by}, record...)
	case afterEmptyOnes:
		record = append(bytes.Repeat([]byte{by, 3, 3, 0, 0}, int(by)), record...)
	case afterNoise:
		n := min(len(m.script), int(by))
		record, m.script = append(bytes.Clone(m.script[:n]), record...), m.script[n:]
	}
	return record
}

// FuzzTLS changes a client's records under way. Sessions get what the client has sent or nothing, the connection ends when its peer
// has gone, and nothing of it is left.
func FuzzTLS(f *testing.F) {
	for kind := byte(0); kind < kinds; kind++ {
		for before := range 5 { // the client's records: hello, its end of the handshake, command, farewell
			f.Add(append(make([]byte, before), kind, 130, 77, 22, 1, 255, 255, 255, 0), before%2 == 0, before < 3)
		}
	}
	f.Fuzz(func(t *testing.T, script []byte, old, byLoops bool) {
		c := secured(t, func(c *carried) {
			if byLoops && HasLoops {
				c.Loops = 1
			}
			c.handle = func(s *fakeSession, line string) bool {
				if line != "a" {
					t.Errorf("a session got %q", line)
				}
				s.reply("b\n")
				return true
			}
		})
		socket, err := net.Dial("tcp", c.addr.String())
		if err != nil {
			t.Fatal(err)
		}
		m := &mangled{TCPConn: socket.(*net.TCPConn), script: script}
		config := &tls.Config{InsecureSkipVerify: true}
		if old {
			config.MaxVersion = tls.VersionTLS12
		}
		client := tls.Client(m, config)
		reply, whole := make([]byte, 4), bytes.Count(script, []byte{asItIs}) == len(script)
		for range 2 {
			_ = socket.SetDeadline(time.Now().Add(patience))
			if !whole { // both may wait for the other
				_ = socket.SetDeadline(time.Now().Add(20 * time.Millisecond))
			}
			if _, err = client.Write([]byte("a\na\n")); err == nil {
				_, err = io.ReadFull(client, reply)
			}
			if err != nil {
				break
			}
		}
		if whole && (err != nil || string(reply) != "b\nb\n") {
			t.Errorf("unchanged records: %q, %v", reply, err)
		}
		_ = client.CloseWrite()
		socket.Close()
		eventually(t, "end of the connection", func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return !c.handshakes.any() && c.left.Load() == int64(len(c.sessions))
		})
		if n := c.tls.ongoing.Len(); n > 0 || c.panics.Load() > 0 {
			t.Errorf("%d handshakes are unfinished, %d panics", n, c.panics.Load())
		}
	})
}

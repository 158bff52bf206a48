package wire

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// The arguments of a long command are returned after some calls, none of which goes through all of them. The caller may move the bytes
// between two calls.
func TestManyArgumentsTakeSomeCalls(t *testing.T) {
	limits := Limits{MaxArgs: 1 << 20, MaxBulk: 1 << 20, Authed: true}
	for _, n := range []int{1, gatherStep - 1, gatherStep, gatherStep + 1, 10*gatherStep + 7} {
		var stream, want []byte
		stream = fmt.Appendf(stream, "*%d\r\n", n)
		for i := range n {
			arg := strings.Repeat("x", i%5)
			stream = fmt.Appendf(stream, "$%d\r\n%s\r\n", len(arg), arg)
			want = append(append(want, arg...), ' ')
		}
		for _, moved := range []bool{false, true} {
			var r FrameReader
			if _, used, err := r.Next(stream[:len(stream)-1], nil, limits); used > 0 || err != nil || r.Gathering() {
				t.Fatalf("%d arguments, of which the end is missing: %d %v", n, used, err)
			}
			buf, calls := stream, 0
			for {
				calls++
				args, used, err := r.Next(buf, nil, limits)
				if err != nil {
					t.Fatal(err)
				}
				if used > 0 {
					if got := append(bytes.Join(args, []byte{' '}), ' '); used != len(stream) || len(args) != n || !bytes.Equal(got, want) {
						t.Errorf("%d of %d arguments in %d of %d bytes", len(args), n, used, len(stream))
					}
					break
				}
				if !r.Gathering() {
					t.Fatalf("%d arguments are incomplete after %d calls", n, calls)
				}
				if moved && calls == 1 {
					buf = bytes.Clone(stream)
					clear(stream)
				}
			}
			if least, most := n/(gatherStep+1), n/gatherStep+2; calls < least || calls > most {
				t.Errorf("%d arguments took %d calls, want %d to %d", n, calls, least, most)
			}
			if !r.Idle() || r.Gathering() {
				t.Errorf("%d arguments: the reader is not between two commands", n)
			}
			stream = buf
		}
	}
}

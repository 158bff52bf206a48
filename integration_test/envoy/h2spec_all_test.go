//go:build all

package envoy

import (
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/summerwind/h2spec/config"
	"github.com/summerwind/h2spec/generic"
	"github.com/summerwind/h2spec/hpack"
	"github.com/summerwind/h2spec/http2"
	"github.com/summerwind/h2spec/spec"
)

// TestHTTP2: h2spec tries what RFC 7540 and RFC 7541 demand. It asks by GET, for which a server of gRPC has no page.
func TestHTTP2(t *testing.T) {
	s := start(t, shop)
	host, port, err := net.SplitHostPort(s.grpc)
	if err != nil {
		t.Fatal(err)
	}
	at, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	// What cannot hold, as there are only headers and no DATA, and a call is answered before it has ended; and who speaks no HTTP/2 is told
	// so in HTTP/1.1.
	apart := []string{
		"Sends invalid connection preface",
		"Sends a WINDOW_UPDATE frame on half-closed (remote) stream", "Sends a PRIORITY frame on half-closed (remote) stream",
		"Sends HEADERS frames that causes their advertised concurrent stream limit to be exceeded",
		"Sends multiple WINDOW_UPDATE frames increasing the flow control window to above 2^31-1 on a stream",
		`Sends a HEADERS frame with the "content-length" header field which does not equal the DATA frame payload length`,
		`Sends a HEADERS frame with the "content-length" header field which does not equal the sum of the multiple DATA frames payload length`,
	}
	passed := 0
	var look func(*spec.TestGroup)
	look = func(group *spec.TestGroup) {
		for _, test := range slices.Concat(group.Tests, group.StrictTests) {
			switch r := test.Result; {
			case r == nil || r.Skipped:
			case !r.Failed:
				passed++
			case !slices.Contains(apart, test.Desc):
				t.Errorf("%s: %s: %s: %v", group.Title(), test.Desc, test.Requirement, r.Error)
			}
		}
		for _, group := range group.Groups {
			look(group)
		}
	}
	for _, group := range []*spec.TestGroup{generic.Spec(), http2.Spec(), hpack.Spec()} {
		group.Test(&config.Config{Host: host, Port: at, Path: "/", Timeout: 5 * time.Second, MaxHeaderLen: 4000})
		look(group)
	}
	if passed < 130 {
		t.Errorf("%d tests have passed", passed)
	}
	expect(t, dial(t, s.grpc), "client=ann", firstOf2)
}

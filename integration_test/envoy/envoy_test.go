package envoy

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// shop is limits whose windows do not end while a test runs, unless it runs at New Year.
const shop = `domain: shop
descriptors:
  - key: client
    rate_limit: {unit: year, requests_per_unit: 2}
  - key: many
    rate_limit: {unit: year, requests_per_unit: 5000}
  - key: slide
    rate_limit: {unit: year, requests_per_unit: 2, algorithm: slide}
`

// of is a domain with a limit for each client.
func of(domain string, limit int) string {
	return fmt.Sprintf("domain: %s\ndescriptors: [{key: client, rate_limit: {unit: year, requests_per_unit: %d}}]\n", domain, limit)
}

// served is a celld that serves Envoy's rate limit service, and where: the addresses of gRPC, of HTTP and of metrics.
type served struct {
	*harness.Server
	grpc, http, metrics string
	config              string // its file
}

// start starts one with a configuration.
func start(t *testing.T, config string, flags ...string) *served {
	t.Helper()
	file := filepath.Join(t.TempDir(), "limits.yaml")
	celldtest.WriteFile(t, config, file)
	s := startOn(t, harness.Spec{Flags: append([]string{"--envoy-config", file, "--envoy-bind", "127.0.0.1:0"}, flags...)})
	s.config = file
	return s
}

// startOn starts one with a configuration that its flags or variables name.
func startOn(t *testing.T, spec harness.Spec) *served {
	t.Helper()
	s := &served{Server: spec.Start(t)}
	s.Logs("Envoy's rate limit service is served")
	lines := bufio.NewScanner(strings.NewReader(s.Log.String()))
	for lines.Scan() {
		var event struct {
			Msg     string `json:"msg"`
			GRPC    string `json:"envoy"`
			HTTP    string `json:"envoy_http"`
			Metrics string `json:"envoy_metrics"`
		}
		if json.Unmarshal(lines.Bytes(), &event) == nil && strings.HasPrefix(event.Msg, "Envoy's rate limit service") {
			s.grpc, s.http, s.metrics = event.GRPC, "http://"+event.HTTP, "http://"+event.Metrics
		}
	}
	return s
}

// connect connects to a rate limit service, in the clear or by TLS.
func connect(t *testing.T, addr string, by ...*tls.Config) *grpc.ClientConn {
	t.Helper()
	secrets := insecure.NewCredentials()
	if len(by) > 0 {
		secrets = credentials.NewTLS(by[0])
	}
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(secrets))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// dial returns a client of a rate limit service.
func dial(t *testing.T, addr string, by ...*tls.Config) ratelimit.RateLimitServiceClient {
	t.Helper()
	return ratelimit.NewRateLimitServiceClient(connect(t, addr, by...))
}

func ask(c ratelimit.RateLimitServiceClient, q *ratelimit.RateLimitRequest) (*ratelimit.RateLimitResponse, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return c.ShouldRateLimit(ctx, q, grpc.WaitForReady(true))
}

// request asks for a descriptor of an entry, key=value.
func request(domain, entry string) *ratelimit.RateLimitRequest {
	key, value, _ := strings.Cut(entry, "=")
	return &ratelimit.RateLimitRequest{Domain: domain, Descriptors: []*common.RateLimitDescriptor{
		{Entries: []*common.RateLimitDescriptor_Entry{{Key: key, Value: value}}},
	}}
}

// told is what an answer says in short: the code, and for each status its code, the limit, what remains, and whether its window ends; or
// the error.
func told(r *ratelimit.RateLimitResponse, err error) string {
	if err != nil {
		return err.Error()
	}
	text := r.OverallCode.String()
	for _, s := range r.Statuses {
		text += fmt.Sprintf(" / %v", s.Code)
		if l := s.CurrentLimit; l != nil {
			text += fmt.Sprintf(" of %d a %v", l.RequestsPerUnit, l.Unit)
		}
		text += fmt.Sprintf(", %d left", s.LimitRemaining)
		if s.DurationUntilReset.GetSeconds() > 0 {
			text += ", ends"
		}
	}
	return text
}

// The answers for a client of 2 requests a year.
const (
	firstOf2  = "OK / OK of 2 a YEAR, 1 left, ends"
	secondOf2 = "OK / OK of 2 a YEAR, 0 left, ends"
	overOf2   = "OVER_LIMIT / OVER_LIMIT of 2 a YEAR, 0 left, ends"
	noLimit   = "OK / OK, 0 left"
)

// expect asks for an entry of domain shop, and fails the test unless this is the answer.
func expect(t *testing.T, c ratelimit.RateLimitServiceClient, entry, want string) {
	t.Helper()
	if got := told(ask(c, request("shop", entry))); got != want {
		t.Errorf("%s: got %s, want %s", entry, got, want)
	}
}

// limitOf asks a client's limit without a hit. It is "none" where none holds.
func limitOf(c ratelimit.RateLimitServiceClient, domain string) string {
	q := request(domain, "client=looks")
	q.Descriptors[0].HitsAddend = &wrapperspb.UInt64Value{}
	r, err := ask(c, q)
	switch {
	case err != nil:
		return err.Error()
	case r.Statuses[0].CurrentLimit == nil:
		return "none"
	}
	return fmt.Sprint(r.Statuses[0].CurrentLimit.RequestsPerUnit)
}

// metric is the value of a series, or "" where there is none.
func metric(page, series string) string {
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (.*)$`).FindStringSubmatch(page)
	if found == nil {
		return ""
	}
	return found[1]
}

// reload is what the log says from the sending of a SIGHUP to its end.
func (s *served) reload() (said string) {
	s.T.Helper()
	before := len(s.Log.String())
	s.Cmd.Process.Signal(syscall.SIGHUP)
	celldtest.Eventually(s.T, "it reloads", func() bool {
		said = s.Log.String()[before:]
		return strings.Contains(said, `"msg":"reloaded"`)
	})
	return said
}

//go:build all

package envoy

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

var (
	record  = flag.String("record", "", "write what the reference answers to this file, for the tests of resp/envoy")
	domains = flag.Int("domains", 10_000, "how many configurations to try")
)

// Exchange is a request, and the reference's answer at a time.
type Exchange struct {
	At       int64           `json:"at"`
	Request  json.RawMessage `json:"request"`
	Response json.RawMessage `json:"response,omitempty"`
	Error    bool            `json:"error,omitempty"`
}

// Recording is what the tests of resp/envoy replay.
type Recording struct {
	Shadow    bool              `json:"shadow,omitempty"`
	Quota     bool              `json:"quota,omitempty"`
	Files     map[string]string `json:"files"`
	Exchanges []Exchange        `json:"exchanges"`
}

// TestSameAsReference sends the same requests to envoyproxy/ratelimit and to celld.
func TestSameAsReference(t *testing.T) {
	var recordings []Recording
	for _, mode := range []Recording{{}, {Shadow: true}, {Quota: true}} {
		n := *domains
		if mode.Quota && newest == "" {
			continue
		}
		if mode.Shadow || mode.Quota {
			n /= 10
		}
		t.Run(fmt.Sprintf("shadow %v, quota %v", mode.Shadow, mode.Quota), func(t *testing.T) { compare(t, &mode, n) })
		recordings = append(recordings, mode)
	}
	if *record == "" {
		return
	}
	file, err := os.Create(*record)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zip := gzip.NewWriter(file)
	out := bufio.NewWriter(zip)
	if err := json.NewEncoder(out).Encode(recordings); err != nil {
		t.Fatal(err)
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
}

// compare tries n configurations, each with some requests.
func compare(t *testing.T, into *Recording, n int) {
	r := &random{Rand: celldtest.NewRand(t), old: newest == ""}
	dir := filepath.Join(t.TempDir(), "config")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	into.Files = map[string]string{}
	for i := range n {
		name := fmt.Sprintf("d%d", i)
		into.Files[name] = r.config(name)
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(into.Files[name]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	theirs := startReference(t, dir, "SHADOW_MODE="+fmt.Sprint(into.Shadow), "QUOTA_MODE="+fmt.Sprint(into.Quota),
		"LIMIT_RESPONSE_HEADERS_ENABLED=true", "RESPONSE_DYNAMIC_METADATA="+fmt.Sprint(newest != ""))
	yesNo := map[bool]string{true: "yes", false: "no"}
	ours := "127.0.0.1:" + harness.FreePort(t)
	harness.Start(t, "--envoy-bind", ours, "--envoy-config", dir, "--envoy-shadow", yesNo[into.Shadow], "--envoy-quota", yesNo[into.Quota],
		"--envoy-headers", "RateLimit-Limit RateLimit-Remaining RateLimit-Reset", "--envoy-dynamic-metadata", yesNo[newest != ""])
	mine := dial(t, ours)
	edges, over, asked, differences := 0, 0, 0, 0
	for i := range n {
		domain := fmt.Sprintf("d%d", i)
		if r.one(40) {
			domain = "unknown"
		}
		var q *ratelimit.RateLimitRequest
		for range 8 {
			if q == nil || r.one(3) {
				q = r.request(domain)
			}
			asked++
			awaitMiddle()
			before := time.Now().Unix()
			want, wantErr := ask(theirs.client, q)
			got, gotErr := ask(mine, q)
			if time.Now().Unix() != before {
				edges++ // one of them may have counted in the next window
				break
			}
			if (wantErr != nil) != (gotErr != nil) {
				t.Fatalf("%v: got %v, want %v", q, gotErr, wantErr)
			}
			if wantErr == nil {
				normalize(want)
				normalize(got)
				for _, status := range want.Statuses {
					if status.Code == ratelimit.RateLimitResponse_OVER_LIMIT {
						over++
					}
				}
				if !proto.Equal(want, got) {
					if differences++; differences > 5 {
						t.FailNow()
					}
					t.Errorf("%s\n%v\n got %v\nwant %v", into.Files[domain], q, got, want)
					break
				}
			}
			if *record != "" {
				into.Exchanges = append(into.Exchanges, Exchange{before, encode(t, q), encode(t, want), wantErr != nil})
			}
		}
	}
	t.Logf("%d configurations, %d requests, %d statuses over the limit, %d configurations left at the edge of a second",
		n, asked, over, edges)
	if over < n/4 || edges > n/5 {
		t.Error("too little was compared")
	}
}

// awaitMiddle waits where a second is about to end, and where windows of two units have just begun: then the reference, whose keys do not
// have the unit, counts both as one.
func awaitMiddle() {
	await(func(now time.Time) bool {
		return now.Nanosecond() < 950_000_000 && now.Unix()%3600 >= 61 && now.Unix()%60 >= 1
	})
}

// await waits for a time.
func await(comes func(now time.Time) bool) {
	for !comes(time.Now()) {
		time.Sleep(10 * time.Millisecond)
	}
}

// normalize undoes what differs on purpose. A limit that was overridden is written with one blank or two.
func normalize(r *ratelimit.RateLimitResponse) {
	for _, d := range r.GetDynamicMetadata().GetFields()["descriptors"].GetListValue().GetValues() {
		fields := d.GetStructValue().GetFields()
		if limit := fields["limit"]; limit != nil {
			fields["limit"] = structpb.NewStringValue(strings.Join(strings.Fields(limit.GetStringValue()), " "))
		}
	}
}

func encode(t *testing.T, m proto.Message) json.RawMessage {
	t.Helper()
	text, err := protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

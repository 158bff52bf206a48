package envoy

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"celld/resp/door"
	"celld/resp/envoy/domains"
	"celld/resp/envoy/message"
	"celld/store"
	"celld/store/memory"
	"celld/store/policy"
)

// world is a service on a table, at a time that the test sets.
type world struct {
	service
	keys     *memory.Store
	nowNS    int64
	err      error          // of all requests
	verdicts []door.Verdict // of the last requests
	asked    []store.TakeRequest
}

func newWorld(t testing.TB, o Options, files ...string) *world {
	t.Helper()
	w := &world{keys: memory.New(memory.Options{}), nowNS: 1_800_000_030e9}
	if o.NearLimit == 0 {
		o.NearLimit = 0.8
	}
	w.service = service{limits: w, options: o, stats: newStatistics(), now: func() time.Time { return time.Unix(0, w.nowNS) }}
	w.configure(t, files...)
	return w
}

func (w *world) configure(t testing.TB, files ...string) {
	t.Helper()
	var list []domains.File
	for i, text := range files {
		list = append(list, domains.File{Name: fmt.Sprintf("%d.yaml", i), Text: []byte(text)})
	}
	set, err := domains.Parse(list, domains.Options{Merge: w.options.Merge})
	if err != nil {
		t.Fatal(err)
	}
	w.set.Store(set)
}

func (w *world) Decide(requests []store.TakeRequest, verdict func(i int) door.Verdict) error {
	if w.err != nil {
		return w.err
	}
	memory.Port{Store: w.keys}.TakeBatch(requests, store.Access{NowNS: w.nowNS}, nil)
	w.verdicts, w.asked = w.verdicts[:0], append(w.asked[:0], requests...)
	for i := range requests {
		w.verdicts = append(w.verdicts, verdict(i))
	}
	return nil
}

func (w *world) Policy(name string) *policy.Policy { return w.keys.Policy([]byte(name)) }

// json asks in JSON, and answers in JSON or with an error.
func (w *world) json(request string) string {
	q, err := message.UnmarshalJSON([]byte(request))
	if err != nil {
		return "JSON: " + err.Error()
	}
	answer, err := w.ask(q)
	if err != nil {
		return err.Error()
	}
	text, err := answer.MarshalJSON()
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// testdata/recorded.json.gz has what envoyproxy/ratelimit f2fb157 answered with a redis-server. TestSameAsReference in
// integration_test/envoy writes it: RATELIMIT=… go test -tags all ./envoy -args -domains 400 -record ….
func TestRecordedAnswers(t *testing.T) {
	file, err := os.Open("testdata/recorded.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var recordings []struct {
		Shadow, Quota bool
		Files         map[string]string
		Exchanges     []struct {
			At                int64
			Request, Response json.RawMessage
			Error             bool
		}
	}
	if err := json.NewDecoder(text).Decode(&recordings); err != nil {
		t.Fatal(err)
	}
	asked, over := 0, 0
	for _, r := range recordings {
		var files []string
		for _, text := range r.Files {
			files = append(files, text)
		}
		w := newWorld(t, Options{Shadow: r.Shadow, Quota: r.Quota, Metadata: true,
			Headers: []string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"}}, files...)
		for _, x := range r.Exchanges {
			w.nowNS = x.At * 1e9
			got := w.json(string(x.Request))
			if x.Error {
				if strings.HasPrefix(got, "{") {
					t.Fatalf("%s: got %s, want an error", x.Request, got)
				}
				continue
			}
			if !reflect.DeepEqual(tree(t, got), tree(t, string(x.Response))) {
				t.Fatalf("%s\n got %s\nwant %s", x.Request, got, x.Response)
			}
			asked++
			over += strings.Count(got, `"OVER_LIMIT"`)
		}
	}
	if asked < 3000 || over < 200 {
		t.Errorf("only %d answers, with %d over, are recorded", asked, over)
	}
}

// tree is what JSON says. protobuf writes a limit in metadata with one blank or two, and does not say which.
func tree(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(strings.ReplaceAll(text, "  ", " ")), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

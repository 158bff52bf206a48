package peers

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"celld/integration_test/harness"
)

// vectors.json holds what redis-cell 0.5.0 answered, byte for byte; its own "format" text says how it is replayed.
type vectors struct {
	MaxDelayMS int64 `json:"max_total_delay_ms"`
	Cases      []struct {
		Name  string
		Keys  []string
		Quirk string
		Steps []vectorStep
	}
	Crashes []struct {
		Name  string
		Keys  []string
		Setup []vectorStep
		Cmd   vectorStep
		Want  string
	} `json:"reference_crashes"`
}

type vectorStep struct {
	Args    []string
	ArgsB64 [][]byte `json:"args_b64"`
	Reply   string
}

func loadVectors(t *testing.T) (v vectors) {
	t.Helper()
	text, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// args are the step's arguments with each of the case's keys made unique by a suffix.
func (s vectorStep) args(keys []string, suffix string) []string {
	args := slices.Clone(s.Args)
	for _, b := range s.ArgsB64 {
		args = append(args, string(b))
	}
	for i := range args {
		if i > 0 && slices.Contains(keys, args[i]) {
			args[i] += suffix
		}
	}
	return args
}

// TestVectors replays every recorded case. Where celld deliberately answers otherwise, betterThanVectors says what and why.
func TestVectors(t *testing.T) {
	t.Parallel()
	v := loadVectors(t)
	srv := harness.Start(t)
	c := harness.Dial(t, srv.Addr)
	unused := map[string]bool{}
	for name := range betterThanVectors {
		unused[name] = true
	}
	for _, vc := range v.Cases {
		better, listed := betterThanVectors[vc.Name]
		delete(unused, vc.Name)
		if vc.Quirk != "" && !listed {
			t.Errorf("%s: a quirk (%s) without a word on what celld does", vc.Name, vc.Quirk)
			continue
		}
		want := make([]string, len(vc.Steps))
		for i, step := range vc.Steps {
			want[i] = step.Reply
		}
		if listed {
			if slices.Equal(better.replies, want) {
				t.Errorf("%s: the same as redis-cell, so not an exception", vc.Name)
			}
			want = better.replies
		}
		if len(want) != len(vc.Steps) {
			t.Errorf("%s: %d steps, %d replies listed", vc.Name, len(vc.Steps), len(want))
			continue
		}
		for attempt := 0; ; attempt++ { // on fresh keys, until it went as fast as the recording
			got := make([]string, len(vc.Steps))
			suffix := fmt.Sprintf("-%d", attempt)
			began := time.Now()
			for i, step := range vc.Steps {
				got[i] = c.Do(step.args(vc.Keys, suffix)...)
			}
			took := time.Since(began)
			keyLeft := false
			if better.keyGone {
				keyLeft = c.Do("EXISTS", vc.Keys[0]+suffix) != ":0\r\n"
			}
			if took.Milliseconds() > v.MaxDelayMS && attempt < 100 {
				continue
			}
			for i := range got {
				if got[i] != want[i] {
					t.Errorf("%s: step %d, %q\n got %q\nwant %q", vc.Name, i+1, vc.Steps[i].args(vc.Keys, ""), got[i], want[i])
				}
			}
			if keyLeft {
				t.Errorf("%s: the key is left behind", vc.Name)
			}
			break
		}
	}
	for name := range unused {
		t.Errorf("betterThanVectors: no case is named %q", name)
	}
}

// TestVectorsThatKillRedis sends what makes redis-server with redis-cell 0.5.0 die.
func TestVectorsThatKillRedis(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t)
	c := harness.Dial(t, srv.Addr)
	for i, crash := range loadVectors(t).Crashes {
		suffix := "-" + strconv.Itoa(i)
		refused := false
		for _, step := range crash.Setup {
			refused = strings.HasPrefix(c.Do(step.args(crash.Keys, suffix)...), "-") || refused
		}
		args := crash.Cmd.args(crash.Keys, suffix)
		got := c.Do(args...)
		_, proper := harness.FiveInts(got)
		negative := strings.Contains(crash.Name, `the string "-`) // which is a count here, as any integer that is no TAT
		mayReply := refused || negative || strings.Contains(crash.Want, "proper reply")
		if !strings.HasPrefix(got, "-") && !(proper && mayReply) {
			t.Errorf("%s: %q\n got %q\nwant %s", crash.Name, args, got, crash.Want)
		}
		srv.Alive()
	}
}

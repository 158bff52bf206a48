package resp

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"celld/cell"
	"celld/resp/decisions"
	"celld/resp/metrics"
	"celld/resp/session/sessiontest"
	"celld/resp/stats"
	"celld/store"
	"celld/store/memory"
)

// count is what a test adds to.
type count interface {
	Add(n int64) int64
	Load() int64
}

// literalCount is one of decisions under literals of GCRA.
type literalCount struct {
	w    *world
	kind decisions.Kind
}

func (c literalCount) Add(n int64) int64 {
	var batch decisions.Batch
	batch.In(c.w.sessions.Decisions.Literal(cell.GCRA), 0)[c.kind] += n
	batch.Settle(0, nil)
	return 0
}

func (c literalCount) Load() int64 { return c.w.sessions.Decisions.Sum()[c.kind] }

// INFO shows each count under its name, and what has come to it since CONFIG RESETSTAT; the totals stay.
func TestCounters(t *testing.T) {
	w := newWorld(t)
	st := w.sessions.Stats
	decided := func(kind decisions.Kind) count { return literalCount{w, kind} }
	var engine [11]atomic.Int64
	counts := []count{
		&st.RejectedClients, &st.DeniedClients, &st.ErrorReplies, &st.WrongPasswords, decided(decisions.ThrottleAllowed),
		decided(decisions.ThrottleLimited), decided(decisions.TakeAllowed), decided(decisions.TakeLimited), decided(decisions.RuleDenied),
		decided(decisions.ShadowLimited), decided(decisions.ShadowAllowed), &st.ClockSteps, &st.ProtocolErrors, &st.QueryLimitCloses,
		&st.OutputLimitCloses, &st.IdleCloses, &st.Panics, &engine[0], &engine[1], &engine[2], &engine[3], &engine[4], &engine[5],
		&engine[6], &engine[7], &engine[8], &engine[9], &engine[10],
		&st.FailedHandshakes,
		&st.DeniedCommands, &st.DeniedKeys, &st.DeniedCerts, decided(decisions.CountAllowed), decided(decisions.CountLimited),
		decided(decisions.EnvoyAllowed), decided(decisions.EnvoyLimited),
	}
	st.Engine = func() store.Counts {
		n := func(i int) int64 { return engine[i].Load() }
		return store.Counts{Calls: n(0), Failures: n(1), Timeouts: n(2), Conflicts: n(3), DenialsRemembered: n(4), DecidedWithout: n(9),
			DecidedAhead: n(5), UnitsTaken: n(6), UnitsGivenBack: n(7), UnitsEnded: n(8), Refused: n(10)}
	}
	dropped := int64(0)
	st.DroppedLines = func() int64 { return dropped }
	add := func() {
		for i, n := range counts {
			n.Add(int64(11 + i))
		}
		dropped += 42
	}
	c := w.connect()
	st.CommandsPerSecond.Store(1)
	st.InputPerSecond.Store(2 << 10)
	st.OutputPerSecond.Store(3 << 10)
	connections, commands, resetInput, resetOutput := 1, 4, int64(0), int64(0)
	for range 2 {
		c.want("SET k 5", "+OK\r\n")
		c.want("GET k", "$1\r\n5\r\n")
		c.want("GET no", "$-1\r\n")
		c.want("GET no", "$-1\r\n")
		w.sleepMS(1000)
		add()
		input, output := st.InputBytes.Load()-resetInput, st.OutputBytes.Load()-resetOutput
		ask := sessiontest.Frame("INFO", "stats")
		want := fmt.Sprintf("# Stats\r\ntotal_connections_received:%d\r\ntotal_commands_processed:%d\r\ninstantaneous_ops_per_sec:1\r\n"+
			"total_net_input_bytes:%d\r\ntotal_net_output_bytes:%d\r\ninstantaneous_input_kbps:2.00\r\ninstantaneous_output_kbps:3.00\r\n"+
			"rejected_connections:11\r\ndenied_connections:12\r\nexpired_keys:0\r\nevicted_keys:0\r\nfull_refusals:0\r\nkeyspace_hits:1\r\nkeyspace_misses:2\r\n"+
			"total_error_replies:13\r\nacl_access_denied_auth:14\r\nacl_access_denied_cmd:40\r\nacl_access_denied_key:41\r\nacl_access_denied_tls_cert:42\r\nthrottle_allowed:15\r\nthrottle_limited:16\r\ntake_allowed:17\r\ntake_limited:18\r\ncount_allowed:43\r\ncount_limited:44\r\nenvoy_allowed:45\r\nenvoy_limited:46\r\n"+
			"rule_denied:19\r\nshadow_limited:20\r\nshadow_allowed:21\r\nclock_steps:22\r\nprotocol_errors:23\r\n"+
			"client_query_buffer_limit_disconnections:24\r\nclient_output_buffer_limit_disconnections:25\r\nidle_disconnections:26\r\nlog_lines_dropped:42\r\nhandler_panics:27\r\n"+
			"store_calls:28\r\nstore_failures:29\r\nstore_timeouts:30\r\nstore_conflicts:31\r\nstore_denials_remembered:32\r\nstore_decided_ahead:33\r\nstore_units_taken:34\r\nstore_units_given_back:35\r\nstore_units_ended:36\r\nstore_decided_without:37\r\nstore_refused:38\r\n"+
			"tls_handshake_failures:39\r\n",
			connections, commands, input+int64(len(ask)), output)
		if _, got, _ := strings.Cut(c.send(ask), "\r\n"); strings.TrimSuffix(got, "\r\n") != want {
			t.Errorf("got %s, want %s", got, want)
		}
		resetOutput = st.OutputBytes.Load()
		c.want("CONFIG RESETSTAT", "+OK\r\n")
		connections, commands, resetInput = 0, 5, st.InputBytes.Load() // the first of the five is RESETSTAT
	}
	for i, n := range counts {
		if n.Load() != int64(2*(11+i)) {
			t.Errorf("total %d is %d", i, n.Load())
		}
	}
}

// What the store counts is shown as well.
func TestCountersOfTheStore(t *testing.T) {
	shown := map[string]int64{}
	st := stats.NewServer()
	for _, m := range metrics.New().Read(0,
		func(l *metrics.List) { st.DeclareTraffic(l, &memory.Stats{Expired: 1, Evicted: 2, Hits: 3, Misses: 4}) }) {
		if n, ok := m.Value.(int64); ok && n != 0 {
			shown[m.Field] = n
		}
	}
	if got, want := fmt.Sprint(shown), "map[evicted_keys:2 expired_keys:1 keyspace_hits:3 keyspace_misses:4]"; got != want {
		t.Error(got)
	}
}

// Names are such as Prometheus takes and promtool recommends, and each is there once.
func TestMetricNames(t *testing.T) {
	name, label := regexp.MustCompile(`^(celld|go|process)_[a-z_]+$`), regexp.MustCompile(`^[a-z_]+$`)
	seen, help := map[string]bool{}, map[string]string{}
	once := func(text string) {
		if text != "" && seen[text] {
			t.Errorf("%s is there twice", text)
		}
		seen[text] = true
	}
	w := newWorld(t)
	w.connect().do("CL.THROTTLE", "k", "1", "1", "1")
	for _, m := range w.Metrics() {
		once(m.Field)
		if m.Name == "" {
			continue
		}
		once(fmt.Sprint(m.Name, " ", m.Labels))
		if was, ok := help[m.Name]; !name.MatchString(m.Name) || !strings.HasSuffix(m.Help, ".") || ok && was != m.Help ||
			(m.Kind == "counter") != strings.HasSuffix(m.Name, "_total") {
			t.Errorf("%s, a %s: help %q", m.Name, m.Kind, m.Help)
		}
		help[m.Name] = m.Help
		for pair := range slices.Chunk(m.Labels, 2) {
			if len(pair) != 2 || !label.MatchString(pair[0]) {
				t.Errorf("%s: labels %q", m.Name, m.Labels)
			}
		}
	}
}

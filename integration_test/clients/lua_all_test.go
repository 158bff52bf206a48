//go:build all

package clients

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	redigo "github.com/gomodule/redigo/redis"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// The script helpers of clients send EVALSHA. If the server does not know the script, they send EVAL or SCRIPT LOAD. These tests flush
// the scripts in between.

const (
	throttleScript = `return redis.call('CL.THROTTLE', KEYS[1], ARGV[1], ARGV[2], ARGV[3])`
	bothScript     = `return {redis.call('CL.THROTTLE', KEYS[1], 1, 1, 3600)[3], {redis.call('CL.THROTTLE', KEYS[2], 15, 30, 60)[3]}}`
	firstScript    = `return redis.call('CL.THROTTLE', KEYS[1], 0, 1, 3600)[1] == 0`
	limitedScript  = `if redis.call('CL.THROTTLE', KEYS[1], 0, 1, 3600)[1] == 1 then return redis.error_reply('LIMITED later') end`
)

// scriptFacts is what each client gets, as redis-server with redis-cell answers it.
type scriptFacts struct {
	First          []int64
	Again, Flushed int64
	Piped, Tx      []int64
	Both           []any
	Bool           []any // of a script that returns true, then false
	Text, Error    string
	Loaded         []any
	Missing        string
}

var wantScriptFacts = scriptFacts{
	First: []int64{0, 16, 15, -1, 200}, Again: 14, Flushed: 13, Piped: []int64{12, 11}, Tx: []int64{10, 9},
	Both: []any{1., []any{15.}}, Bool: []any{1., nil}, Text: "a1.5é", Error: "LIMITED later",
	Loaded: []any{celldtest.Digest("return 7"), 7., []any{1., 0.}}, Missing: "NOSCRIPT",
}

// TestScriptHelpers runs what redis-py, ioredis and node-redis have for scripts.
func TestScriptHelpers(t *testing.T) {
	t.Parallel()
	for _, run := range []struct {
		name, client, script, protocol string
	}{
		{"redis-py", "python/bin/python", "scripts.py", "2"},
		{"redis-py RESP3", "python/bin/python", "scripts.py", "3"},
		{"ioredis", "node_modules/ioredis", "scripts_ioredis.js", ""},
		{"node-redis", "node_modules/redis", "scripts_node_redis.js", "2"},
		{"node-redis RESP3", "node_modules/redis", "scripts_node_redis.js", "3"},
	} {
		t.Run(run.name, func(t *testing.T) {
			t.Parallel()
			var got scriptFacts
			runScript(t, &got, run.client, run.script, "redis://"+harness.Start(t).Addr+"/0", run.protocol)
			if !reflect.DeepEqual(got, wantScriptFacts) {
				t.Errorf(" got %+v\nwant %+v", got, wantScriptFacts)
			}
		})
	}
}

// TestGoRedisScripts uses go-redis's NewScript.
func TestGoRedisScripts(t *testing.T) {
	t.Parallel()
	for _, protocol := range []int{2, 3} {
		ctx := t.Context()
		db := redis.NewClient(&redis.Options{Addr: harness.Start(t).Addr, Protocol: protocol})
		defer db.Close()
		throttle := redis.NewScript(throttleScript)
		remaining := func(c *redis.Cmd) int64 {
			t.Helper()
			ints, err := c.Int64Slice()
			if err != nil || len(ints) != 5 {
				t.Fatalf("RESP%d: %v, %v", protocol, ints, err)
			}
			return ints[2]
		}
		for i, want := range []int64{15, 14, 13} {
			if i == 2 {
				db.ScriptFlush(ctx)
			}
			if got := remaining(throttle.Run(ctx, db, []string{"k"}, 15, 30, 6000)); got != want {
				t.Errorf("RESP%d, call %d: %d remain, want %d", protocol, i, got, want)
			}
		}
		db.ScriptFlush(ctx)
		if known, err := throttle.Exists(ctx, db).Result(); err != nil || !slices.Equal(known, []bool{false}) {
			t.Errorf("Exists: %v, %v", known, err)
		}
		if sha, err := throttle.Load(ctx, db).Result(); err != nil || sha != throttle.Hash() {
			t.Errorf("Load: %v, %v", sha, err)
		}
		for name, run := range map[string]func(context.Context, func(redis.Pipeliner) error) ([]redis.Cmder, error){
			"pipeline": db.Pipelined, "MULTI": db.TxPipelined,
		} {
			var first, second *redis.Cmd
			if _, err := run(ctx, func(p redis.Pipeliner) error {
				first, second = throttle.EvalSha(ctx, p, []string{name}, 15, 30, 6000), throttle.Eval(ctx, p, []string{name}, 15, 30, 6000)
				return nil
			}); err != nil || remaining(first) != 15 || remaining(second) != 14 {
				t.Errorf("RESP%d, %s: %v, %v, %v", protocol, name, first, second, err)
			}
		}
		both, err := redis.NewScript(bothScript).Run(ctx, db, []string{"a", "b"}).Slice()
		if err != nil || !reflect.DeepEqual(both, []any{int64(1), []any{int64(15)}}) {
			t.Errorf("RESP%d: %v, %v", protocol, both, err)
		}
		first := redis.NewScript(firstScript)
		if ok, err := first.Run(ctx, db, []string{"c"}).Bool(); !ok || err != nil {
			t.Errorf("RESP%d: true is %v, %v", protocol, ok, err)
		}
		if v, err := first.Run(ctx, db, []string{"c"}).Result(); err != redis.Nil {
			t.Errorf("RESP%d: false is %v, %v", protocol, v, err)
		}
		if err := redis.NewScript(limitedScript).Run(ctx, db, []string{"c"}).Err(); err == nil || err.Error() != "LIMITED later" {
			t.Errorf("RESP%d: an error reply is %v", protocol, err)
		}
		if n, err := redis.NewScript(`return redis.call('EXISTS', KEYS[1])`).RunRO(ctx, db, []string{"c"}).Int(); n != 1 || err != nil {
			t.Errorf("RESP%d, RunRO: %v, %v", protocol, n, err)
		}
		err = first.RunRO(ctx, db, []string{"d"}).Err()
		if err == nil || !strings.HasPrefix(err.Error(), "ERR Write commands are not allowed from read-only scripts.") {
			t.Errorf("RESP%d, a write by RunRO: %v", protocol, err)
		}
		if err := db.EvalSha(ctx, strings.Repeat("f", 40), nil).Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
			t.Errorf("RESP%d: an unknown digest: %v", protocol, err)
		}
	}
}

// TestRueidisScripts uses rueidis's NewLuaScript.
func TestRueidisScripts(t *testing.T) {
	t.Parallel()
	for _, resp2 := range []bool{false, true} {
		ctx := t.Context()
		db, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{harness.Start(t).Addr}, DisableCache: true,
			AlwaysRESP2: resp2, ForceSingleClient: true})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		throttle := rueidis.NewLuaScript(throttleScript)
		for i, want := range []int64{15, 14, 13} {
			if i == 2 {
				db.Do(ctx, db.B().ScriptFlush().Build())
			}
			ints, err := throttle.Exec(ctx, db, []string{"k"}, []string{"15", "30", "6000"}).AsIntSlice()
			if err != nil || len(ints) != 5 || ints[2] != want {
				t.Errorf("RESP2 %v, call %d: %v, %v, want %d to remain", resp2, i, ints, err, want)
			}
		}
		db.Do(ctx, db.B().ScriptFlush().Build())
		exec := rueidis.LuaExec{Keys: []string{"k"}, Args: []string{"15", "30", "6000"}}
		for i, reply := range throttle.ExecMulti(ctx, db, exec, exec) {
			if ints, err := reply.AsIntSlice(); err != nil || len(ints) != 5 || ints[2] != 12-int64(i) {
				t.Errorf("RESP2 %v, ExecMulti: %v, %v", resp2, ints, err)
			}
		}
		both, err := rueidis.NewLuaScript(bothScript).Exec(ctx, db, []string{"a", "b"}, nil).ToAny()
		if err != nil || !reflect.DeepEqual(both, []any{int64(1), []any{int64(15)}}) {
			t.Errorf("RESP2 %v: %v, %v", resp2, both, err)
		}
		first := rueidis.NewLuaScript(firstScript)
		if ok, err := first.Exec(ctx, db, []string{"c"}, nil).AsBool(); !ok || err != nil {
			t.Errorf("RESP2 %v: true is %v, %v", resp2, ok, err)
		}
		if err := first.Exec(ctx, db, []string{"c"}, nil).Error(); !rueidis.IsRedisNil(err) {
			t.Errorf("RESP2 %v: false is %v", resp2, err)
		}
		err = rueidis.NewLuaScript(limitedScript).Exec(ctx, db, []string{"c"}, nil).Error()
		if err == nil || err.Error() != "LIMITED later" {
			t.Errorf("RESP2 %v: an error reply is %v", resp2, err)
		}
		n, err := rueidis.NewLuaScriptReadOnly(`return redis.call('EXISTS', KEYS[1])`).Exec(ctx, db, []string{"c"}, nil).AsInt64()
		if n != 1 || err != nil {
			t.Errorf("RESP2 %v, read-only: %v, %v", resp2, n, err)
		}
	}
}

// TestRedigoScripts uses redigo's NewScript.
func TestRedigoScripts(t *testing.T) {
	t.Parallel()
	c, err := redigo.Dial("tcp", harness.Start(t).Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	throttle := redigo.NewScript(1, throttleScript)
	for i, want := range []int64{15, 14, 13} {
		if i == 2 {
			c.Do("SCRIPT", "FLUSH")
		}
		if ints, err := redigo.Int64s(throttle.Do(c, "k", 15, 30, 6000)); err != nil || len(ints) != 5 || ints[2] != want {
			t.Errorf("call %d: %v, %v, want %d to remain", i, ints, err, want)
		}
	}
	if err := throttle.Load(c); err != nil {
		t.Error(err)
	}
	throttle.SendHash(c, "k", 15, 30, 6000)
	throttle.Send(c, "k", 15, 30, 6000)
	c.Flush()
	for want := int64(12); want > 10; want-- {
		if ints, err := redigo.Int64s(c.Receive()); err != nil || len(ints) != 5 || ints[2] != want {
			t.Errorf("sent: %v, %v, want %d to remain", ints, err, want)
		}
	}
	first := redigo.NewScript(1, firstScript)
	if ok, err := redigo.Bool(first.Do(c, "c")); !ok || err != nil {
		t.Errorf("true is %v, %v", ok, err)
	}
	if _, err := redigo.Bool(first.Do(c, "c")); !errors.Is(err, redigo.ErrNil) {
		t.Errorf("false is %v", err)
	}
	if _, err := redigo.NewScript(1, limitedScript).Do(c, "c"); err == nil || err.Error() != "LIMITED later" {
		t.Errorf("an error reply is %v", err)
	}
}

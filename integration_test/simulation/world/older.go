package world

import (
	"bufio"
	"embed"
	"fmt"
	"strings"
	"time"

	"celld/resp/wire"
)

// What an older celld has left is there, and stays: its append-only file or snapshot on the disk, or its keys on the engine. Commit
// d2acba67 has written them, in a world like this one and at the same time. Its files have no units.

//go:embed testdata
var older embed.FS

// olderStates are commands, and what celld of that commit has answered: of arrays the first three.
var olderStates = []struct{ asks, answer string }{
	{"CL.THROTTLE old:throttle 99 100 86400 0", "[0 100 60]"},
	{"CL.TAKE old:bucket 100/1d PEEK", "[0 100 70]"},
	{"CL.TAKE old:window 100/366d,algo=window PEEK", "[0 100 70]"},
	{"CL.TAKE old:slide 100/366d,algo=slide PEEK", "[0 100 70]"},
	{"CL.TAKE old:buckets 100/366d,algo=slide,buckets=6 PEEK", "[0 100 70]"},
	{"CL.TAKE old:log 100/366d,algo=log PEEK", "[0 100 70]"},
	{"CL.TAKE old:several 100/366d,algo=window 50/1d PEEK", "[0 50 43]"},
	{"CL.TAKE old:warm 100/1d,warmup=1h PEEK", "[1 100 0]"},
	{"CL.TAKE old:conc 3/1d,algo=conc PEEK", "[0 3 1]"},
	{"CL.TAKE old:conc 3/1d,algo=conc ID a", "[0 3 1]"}, // a repeat
	{"CL.TAKE old:lease 100/366d,algo=window PEEK", "[0 100 70]"},
	{"CL.TAKE old:block 1/1d,block=2d PEEK", "[1 1 0]"},
	{"CL.TAKE old:month 100/year,tz=+02:00 PEEK", "[0 100 70]"},
	{"CL.TAKE old:plan @oldplan PEEK", "[0 100 70]"},
	{"CL.TAKE old:denied 100/1d PEEK", "[1 0 0]"},
	{"GET old:count", "1"},
	{"GET old:counted", "1"},
	{"CL.POLICY GET oldplan", "[100/366d,algo=window 200/1d]"},
	{"CL.RULE LIST old:denied", "[[DENY old:denied  -1]]"},
}

func drawOlder(p *plan) {
	if p.has("crowd") || p.steps || p.ahead < 0 || p.engine == noEngine && p.fsync == "" && !p.snapshots {
		p.without("older")
	}
}

func (w *world) putOlder() {
	time.Sleep(time.Millisecond) // so that all of it is past
	if w.fleet != nil {
		w.fleet.putOlder()
		return
	}
	for name, to := range map[string]string{"older.aof": "/data/appendonly.aof", "older.rdb": "/data/dump.rdb"} {
		data, err := older.ReadFile("testdata/" + name)
		if err != nil {
			panic(err)
		}
		w.all[0].disk.Put(to, data)
	}
}

// putOlder puts the keys onto their masters, by commands whose words stand between tabs.
func (f *fleet) putOlder() {
	data, err := older.ReadFile("testdata/older.engine")
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(data)) {
		words := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		words[1] = f.prefix() + words[1]
		f.ask(words...)
	}
}

// ask asks the master of a key, which must take it.
func (f *fleet) ask(words ...string) {
	n := f.engine.MasterOf(words[1])
	conn, err := f.w.network.Dial("127.0.1.203:0", n.Addr)
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	if _, err := conn.Write(wire.AppendCommand(nil, words...)); err != nil {
		panic(err)
	}
	value, err := readValue(bufio.NewReader(conn))
	if _, failed := value.(failure); failed || err != nil {
		panic(fmt.Sprintf("%q: %v, %v", words, value, err))
	}
}

func runOlder(w *world) {
	c := w.caller("heir", 204)
	time.Sleep(mostAhead) // by which an engine's clock may be set back
	for range c.rounds(10+w.plan.calls/4, 4*w.plan.think+10*time.Millisecond) {
		is := olderStates[c.rnd.IntN(len(olderStates))]
		a := c.do(strings.Fields(is.asks)...)
		code, _, _ := strings.Cut(a.failed(), " ")
		if a.none || code == "MISCONF" || w.plan.mayFail(code) || w.fleet != nil && w.lost(0, a.ended) {
			continue
		}
		got := fmt.Sprint(a.value)
		if list, is := a.value.([]any); is && len(list) > 4 {
			got = fmt.Sprint(list[:3])
		}
		if got != is.answer && !w.all[0].mayBeDamaged {
			w.wrong("%s of an older celld is %s, and was %s", is.asks, got, is.answer)
		}
		w.count("saw older states")
	}
	c.hangUp()
}

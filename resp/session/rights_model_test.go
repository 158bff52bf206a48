package session

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"pgregory.net/rapid"

	"celld/cell"
	"celld/resp/session/sessiontest"
)

// rightsWorld is an operator and users with random rights, who do random things with few keys.
type rightsWorld struct {
	*world
	now     func() int64
	pass    func(ns int64)
	settle  func() // awaits what nobody waits for
	admin   *peer
	users   []*rightsUser
	seen    []seenField         // what operators could copy
	ids     []int64             // of leases
	before  map[string]keyState // nil: not known
	refused int                 // for a key that a lease leads to
}

type rightsUser struct {
	name          string
	reads, writes string // the letters that its keys may begin with
	peer          *peer
}

type seenField struct{ name, text string }

var rightsKeys = []string{"a1", "a2", "b1", "b2", "c-with-a-long-name"}

// sayTo sends a command, or several as they are, and waits for the answer.
func (p *peer) sayTo(words ...string) string {
	raw := words[0]
	if !strings.HasPrefix(raw, "*") {
		raw = sessiontest.Frame(words...)
	}
	return p.finish(p.send(raw))
}

// finish adds the rest of what a session sends, where that takes time.
func (p *peer) finish(got string) string {
	for p.unserved || p.waits != nil {
		for p.waits != nil && !p.waits.ready() {
			time.Sleep(20 * time.Microsecond)
		}
		got += p.send("")
	}
	return got
}

func (u *rightsUser) may(key string, reads, writes bool) bool {
	mayRead, mayWrite := u == nil || strings.Contains(u.reads, key[:1]), u == nil || strings.Contains(u.writes, key[:1])
	return (mayRead || !reads) && (mayWrite || !writes) && (mayRead || mayWrite)
}

func (w *rightsWorld) start(rt *rapid.T) {
	w.users, w.seen, w.ids, w.before = nil, nil, nil, nil
	w.admin = w.connect()
	w.admin.sayTo("FLUSHALL")
	for i := range 3 {
		u := &rightsUser{name: fmt.Sprint("user", i)}
		rules := []string{"ACL", "SETUSER", u.name, "reset", "on", "nopass", "+@all"}
		for _, letter := range []string{"a", "b", "c"} {
			switch access := rapid.SampledFrom([]string{"", "~", "~", "~", "%R~", "%W~"}).Draw(rt, "access"); access {
			case "":
				continue
			case "%R~":
				u.reads += letter
				rules = append(rules, access+letter+"*")
			case "%W~":
				u.writes += letter
				rules = append(rules, access+letter+"*")
			default:
				u.reads, u.writes = u.reads+letter, u.writes+letter
				rules = append(rules, access+letter+"*")
			}
		}
		if got := w.admin.sayTo(rules...); got != "+OK\r\n" {
			rt.Fatal(got)
		}
		w.login(u)
		w.users = append(w.users, u)
	}
	for range 3 {
		pair := rapid.Permutation(rightsKeys).Draw(rt, "pair")
		w.note(w.admin.sayTo("CL.MTAKE", "2", pair[0], "9/1h", pair[1], "9/1h", "LEASE", "600000", "ID", "x"))
	}
}

func (w *rightsWorld) login(u *rightsUser) {
	u.peer = w.connect()
	u.peer.sayTo("AUTH", u.name, "x")
}

// keyState is what the operator sees of a key.
type keyState struct {
	text   string
	fields map[string]string
	gone   bool
}

var fieldOf = regexp.MustCompile(`\$\d+\r\n([^\r]*)\r\n\$\d+\r\n(limit=[^\r]*)\r\n`)

// look asks for all at one instant.
func (w *rightsWorld) look() map[string]keyState {
	raw := sessiontest.Frame("MULTI")
	for _, key := range rightsKeys {
		raw += sessiontest.Frame("ECHO", "="+key) + sessiontest.Frame("PTTL", key) + sessiontest.Frame("GET", key) +
			sessiontest.Frame("HGETALL", key)
	}
	_, all, _ := strings.Cut(w.admin.sayTo(raw+sessiontest.Frame("EXEC")), "\r\n*")
	states := map[string]keyState{}
	for _, part := range strings.Split(all, "\r\n=")[1:] {
		key, text, _ := strings.Cut(part, "\r\n")
		k := keyState{fields: map[string]string{}}
		k.text, _, _ = strings.Cut(text, "\r\n*")
		k.gone = strings.HasPrefix(text, ":-2")
		var lines []string
		for _, f := range fieldOf.FindAllStringSubmatch(text, -1) {
			k.fields[f[1]] = f[2]
			lines = append(lines, f[1]+" "+f[2])
			w.seen = append(w.seen, seenField{f[1], f[2]})
		}
		slices.Sort(lines)
		k.text += strings.Join(lines, "\n")
		states[key] = k
	}
	w.seen = w.seen[max(0, len(w.seen)-50):]
	return states
}

// heldLease is a lease as the text of a state tells it.
type heldLease struct {
	id, end int64
	name    string
	leads   []string
}

// leasesIn reads the leases of a state's text, each with the keys to which it leads.
func leasesIn(text string) (list []heldLease) {
	_, text, _ = strings.Cut(text, " leases=")
	text, _, _ = strings.Cut(text, " ")
	var bytes []byte
	end := func() {
		for len(bytes) > 0 && bytes[0] > 0 { // names here are short
			n := int(bytes[0])
			list[len(list)-1].leads = append(list[len(list)-1].leads, string(bytes[1:n]))
			bytes = bytes[n:]
		}
		bytes = nil
	}
	for one := range strings.SplitSeq(text, ",") {
		parts := strings.Split(one, ":")
		if len(parts) < 3 {
			continue
		}
		last := parts[len(parts)-1]
		if last[0] == 'k' {
			piece, _ := hex.DecodeString(last[1:])
			bytes = append(bytes, piece...)
			continue
		}
		end()
		l := heldLease{}
		l.id, _ = strconv.ParseInt(parts[0], 10, 64)
		l.end, _ = strconv.ParseInt(parts[1], 10, 64)
		if last[0] == 'n' {
			l.name = last[1:]
		}
		list = append(list, l)
	}
	if len(list) > 0 {
		end()
	}
	return list
}

func (k keyState) leases() (list []heldLease) {
	for _, text := range k.fields {
		list = append(list, leasesIn(text)...)
	}
	return list
}

// touch is a key that a command names, or reaches by a link.
type touch struct {
	key           string
	reads, writes bool
}

// deed is a command, and what it does with which keys.
type deed struct {
	words  []string
	named  []touch
	linked []touch
	unsure bool // whether the keys that are linked are reached
}

func both(keys ...string) (list []touch) {
	for _, key := range keys {
		list = append(list, touch{key, true, true})
	}
	return list
}

const leaseHash = "9/1m,algo=conc"

// draw draws a command.
func (w *rightsWorld) draw(rt *rapid.T, now map[string]keyState) (d deed) {
	key := func(label string) string { return rapid.SampledFrom(rightsKeys).Draw(rt, label) }
	k := key("key")
	var leads []string
	for _, key := range rightsKeys {
		if slices.ContainsFunc(now[key].leases(), func(l heldLease) bool { return len(l.leads) > 0 }) {
			leads = append(leads, key)
		}
	}
	if len(leads) > 0 && rapid.IntRange(0, 3).Draw(rt, "leads") > 0 {
		k = rapid.SampledFrom(leads).Draw(rt, "key that leads")
	}
	limits := []string{"9/1h", "9/1m,algo=conc", "30/1h,algo=log"}
	switch rapid.SampledFrom([]string{"take", "mtake", "mtake", "mtake", "id", "id", "id", "hset", "hset", "rename", "read",
		"plain"}).Draw(rt, "what") {
	case "take":
		d.words, d.named = []string{"CL.TAKE", k, rapid.SampledFrom(limits).Draw(rt, "limit")}, both(k)
		w.terms(rt, &d, now)
	case "mtake":
		k2 := key("second")
		limit := rapid.SampledFrom(limits).Draw(rt, "limit")
		d.words, d.named = []string{"CL.MTAKE", "2", k, limit, k2, limit}, both(k, k2)
		w.terms(rt, &d, now)
	case "id":
		id := int64(7)
		if ids := idsOf(now[k]); len(ids) > 0 {
			id = rapid.SampledFrom(ids).Draw(rt, "id")
		}
		d.words = append(rapid.SampledFrom([][]string{{"CL.RELEASE"}, {"CL.SETTLE", "4"}, {"CL.RENEW", "90000"}}).Draw(rt, "command"), "")
		d.words = slices.Insert(d.words[:len(d.words)-1], 1, k, fmt.Sprint(id))
		d.named = both(k)
		d.linked = w.led(now[k], id)
	case "hset":
		d.named = []touch{{k, false, true}}
		f := w.forged(rt, key("linked"))
		if len(w.seen) > 0 && rapid.Bool().Draw(rt, "copies") {
			f = rapid.SampledFrom(w.seen).Draw(rt, "field")
		}
		d.words = []string{"HSET", k, f.name, f.text}
		for _, l := range leasesIn(f.text) {
			for _, to := range l.leads {
				d.linked = append(d.linked, touch{to, false, true})
			}
		}
	case "rename":
		to, command := key("to"), rapid.SampledFrom([]string{"RENAME", "RENAMENX"}).Draw(rt, "command")
		d.words, d.named = []string{command, k, to}, []touch{{k, true, true}, {to, false, true}}
		if k != to && (command == "RENAME" || now[to].gone) {
			for _, l := range now[k].leases() {
				d.linked = append(d.linked, both(l.leads...)...)
			}
		}
	case "read":
		d.named = []touch{{k, true, false}}
		d.words = rapid.SampledFrom([][]string{{"HGETALL", k}, {"HSCAN", k, "0"}, {"HGET", k}, {"HSCAN", k, "0", "MATCH"}}).Draw(rt,
			"command")
		one := ""
		if d.words[0] == "HGET" || len(d.words) == 4 {
			one = shapeOf("9/1h") + rapid.SampledFrom([]string{" leases", ""}).Draw(rt, "field")
			d.words = append(slices.Clone(d.words), one)
		}
		for name, text := range now[k].fields {
			if one == "" || name == one {
				for _, l := range leasesIn(text) {
					for _, to := range l.leads {
						d.linked = append(d.linked, touch{to, true, false})
					}
				}
			}
		}
	default:
		d.named = []touch{{k, false, true}}
		switch c := rapid.SampledFrom([]string{"DEL", "PEXPIRE", "PERSIST", "SET", "CL.GIVE", "CL.RESET", "COPY", "HLEN"}).Draw(rt,
			"command"); c {
		case "PEXPIRE":
			d.words = []string{c, k, "50000"}
		case "SET":
			d.words = []string{c, k, fmt.Sprint(w.now() + 1e10)}
		case "CL.GIVE":
			d.words, d.named = []string{c, k, "9/1h", "3"}, both(k)
		case "COPY":
			to := key("to")
			d.words, d.named = []string{c, k, to, "REPLACE"}, []touch{{k, true, false}, {to, false, true}}
		case "HLEN":
			d.words, d.named = []string{c, k}, []touch{{k, false, false}}
		default:
			d.words = []string{c, k}
		}
	}
	return d
}

func shapeOf(limit string) string {
	l, err := cell.ParseLimit(limit)
	if err != nil {
		panic(err)
	}
	return string(l.Shape.AppendText(nil))
}

func idsOf(k keyState) (ids []int64) {
	for _, l := range k.leases() {
		ids = append(ids, l.id)
	}
	return ids
}

// terms draws how a Take leases, and looks whether it repeats another.
func (w *rightsWorld) terms(rt *rapid.T, d *deed, now map[string]keyState) {
	conc := strings.HasSuffix(d.words[len(d.words)-1], "conc")
	if !conc {
		d.words = append(d.words, "LEASE", rapid.SampledFrom([]string{"1000", "60000"}).Draw(rt, "ms"))
	}
	if rapid.Bool().Draw(rt, "bound") {
		d.words = append(d.words, "BIND")
	}
	lead := d.named[0].key
	name := rapid.SampledFrom([]string{"", "x", "y"}).Draw(rt, "name")
	if name == "" {
		return
	}
	d.words = append(d.words, "ID", name)
	sum := sha256.Sum256([]byte(name))
	var found []int64
	for _, l := range now[lead].leases() {
		if l.name == hex.EncodeToString(sum[:16]) && l.end > w.now() {
			found = append(found, l.id)
			d.unsure = d.unsure || l.id != found[0]
		}
	}
	if len(found) > 0 {
		d.linked = w.led(now[lead], found[0])
	}
}

// led are the keys to which a lease under a key leads, by all limits that it is of.
func (w *rightsWorld) led(k keyState, id int64) (list []touch) {
	for _, l := range k.leases() {
		if l.id == id && l.end > w.now() {
			list = append(list, both(l.leads...)...)
		}
	}
	return list
}

// forged is a field with a lease that leads to a key.
func (w *rightsWorld) forged(rt *rapid.T, to string) seenField {
	id := int64(w.now()/1000 - 1e6)
	if len(w.ids) > 0 {
		id = rapid.SampledFrom(w.ids).Draw(rt, "id")
	}
	bytes := append([]byte{byte(len(to)) + 1}, to...)
	for len(bytes)%16 > 0 {
		bytes = append(bytes, 0)
	}
	end := w.now() + 50e9
	text := fmt.Sprintf("limit=%s leases=%d:%d:1", leaseHash, id, end)
	if rapid.Bool().Draw(rt, "named") {
		sum := sha256.Sum256([]byte("x"))
		text += ":n" + hex.EncodeToString(sum[:16])
	}
	if rapid.Bool().Draw(rt, "links") {
		for len(bytes) > 0 {
			text += fmt.Sprintf(",%d:%d:0:k%x", id, end, bytes[:16])
			bytes = bytes[16:]
		}
	}
	return seenField{shapeOf(leaseHash), text}
}

package describe

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/resp/command/calltest"
	"celld/resp/command/spec"
	"celld/resp/glob"
	"celld/store/memory"
)

// described is a host whose COMMAND tells of a small table.
func described() *calltest.Host {
	none := func(*command.Call) {}
	table := command.NewTable([]*command.Row{
		{Name: "get", Arity: 2, Flags: spec.Readonly | spec.Fast, Keys: spec.OneKey, Usage: "key", Summary: "Gets.", Since: "1.2.0", Group: "string", Run: none},
		{Name: "del", Arity: -2, Flags: spec.Write, Keys: spec.AllKeys, Usage: "key ...", Summary: "Deletes.", Group: "generic", Cost: "O(N)", Run: none},
		{Name: "rename", Arity: 3, Flags: spec.Write, Keys: spec.TwoKeys, Summary: "Renames.", Group: "generic", Run: none},
		{Name: "mset", Arity: -3, Flags: spec.Write, Keys: spec.KeyRange{First: 1, Last: -1, Step: 2}, Group: "string", Run: none},
		{Name: "cl.take", Arity: -3, Flags: spec.Write | spec.Module, Keys: spec.CountedPairs, Usage: "n [LEASE ms]", Summary: "Takes.", Group: spec.GroupLimit, Run: none},
		{Name: "eval", Arity: -3, Keys: spec.ScriptKeys, Group: "scripting", Run: none},
		{Name: "ping", Arity: -1, Group: "connection", Run: none},
		{Name: "client", Arity: -2, Group: "connection", Summary: "Clients.", Sub: []*command.Row{
			{Name: "id", Arity: 2, Group: "connection", Summary: "Tells.", Run: none},
			{Name: "look", Arity: -3, Flags: spec.Readonly, Keys: spec.SubKey, Group: "connection", Run: none},
		}},
	}, func() any { return nil })
	return calltest.New(memory.Options{}, Row(func() *command.Table { return table }))
}

// short is a reply on one line, without the lengths of its texts.
func short(reply string) string {
	return strings.TrimSpace(strings.ReplaceAll(regexp.MustCompile(`\$\d+\r\n`).ReplaceAllString(reply, ""), "\r\n", " "))
}

func wants(t *testing.T, h *calltest.Host, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if got := short(h.Do(strings.Fields(pairs[i])...)); got != strings.TrimSpace(pairs[i+1]) {
			t.Errorf("%s:\n got %s\nwant %s", pairs[i], got, pairs[i+1])
		}
	}
}

const (
	infoGet  = "*10 get :2 *2 +readonly +fast :1 :1 :1 *3 +@read +@string +@fast *0 *1 *6 flags *2 +RO +access begin_search *4 type index spec *2 index :1 find_keys *4 type range spec *6 lastkey :0 keystep :1 limit :0 *0"
	infoDel  = "*10 del :-2 *1 +write :1 :-1 :1 *3 +@keyspace +@write +@slow *0 *1 *6 flags *2 +RW +access begin_search *4 type index spec *2 index :1 find_keys *4 type range spec *6 lastkey :-1 keystep :1 limit :0 *0"
	infoTake = "*10 cl.take :-3 *3 +write +module +movablekeys :0 :0 :0 *4 +@write +@slow +@celld +@limits *0 *1 *6 flags *2 +RW +access begin_search *4 type index spec *2 index :1 find_keys *4 type keynum spec *6 keynumidx :0 firstkey :1 keystep :2 *0"
	infoID   = "*10 client|id :2 *0 :0 :0 :0 *2 +@slow +@connection *0 *0 *0"
	infoLook = "*10 client|look :-3 *1 +readonly :2 :2 :1 *3 +@read +@slow +@connection *0 *1 *6 flags *2 +RO +access begin_search *4 type index spec *2 index :2 find_keys *4 type range spec *6 lastkey :0 keystep :1 limit :0 *0"
	infoHelp = "*10 client|help :2 *0 :0 :0 :0 *2 +@slow +@connection *0 *0 *0"
)

func TestInfo(t *testing.T) {
	h := described()
	wants(t, h, "COMMAND COUNT", ":8", "COMMAND INFO get", "*1 "+infoGet,
		"COMMAND INFO DEL no cl.take client|id", "*4 "+infoDel+" $-1 "+infoTake+" "+infoID,
		"COMMAND INFO client", "*1 *10 client :-2 *0 :0 :0 :0 *1 +@slow *0 *0 *3 "+infoID+" "+infoLook+" "+infoHelp)
	for _, call := range []string{"COMMAND", "COMMAND INFO"} {
		got := short(h.Do(strings.Fields(call)...))
		if !strings.HasPrefix(got, "*8 "+infoTake) || !strings.Contains(got, infoGet) || strings.Count(got, "*10 ") != 11 {
			t.Errorf("%s: %s", call, got)
		}
	}
	if h.Most = 100; strings.Count(h.Do("COMMAND", "INFO", "get", "del"), "access") != 1 {
		t.Error("COMMAND INFO goes on after the most that a client may have")
	}
}

func TestList(t *testing.T) {
	wants(t, described(), "COMMAND LIST", "*8 cl.take client del eval get mset ping rename", "COMMAND LIST FILTERBY MODULE redis-cell",
		"*1 cl.take", "COMMAND LIST FILTERBY MODULE other", "*0", "COMMAND LIST filterby aclcat read",
		"*2 client|look get", "COMMAND LIST filterby aclcat no", "*0", "COMMAND LIST filterby pattern CLIENT*",
		"*4 client client|id client|look client|help", "COMMAND LIST filterby pattern ?et", "*1 get", "COMMAND LIST FILTERBY",
		"-"+argument.ErrSyntax, "COMMAND LIST FILTERBY x y", "-"+argument.ErrSyntax, "COMMAND LIST OTHER pattern *", "-"+argument.ErrSyntax,
		"COMMAND LIST FILTERBY pattern "+strings.Repeat("?", glob.MaxWild+1), fmt.Sprintf("-"+argument.ErrPatternLong, glob.MaxWild))
}

func TestGetKeys(t *testing.T) {
	h := described()
	wants(t, h, "COMMAND GETKEYS get k", "*1 k", "COMMAND GETKEYS del a b c", "*3 a b c", "COMMAND GETKEYS rename a b", "*2 a b",
		"COMMAND GETKEYS mset a 1 b 2", "*2 a b", "COMMAND GETKEYS cl.take 2 a 1/1s b 2/1s", "*2 a b",
		"COMMAND GETKEYS client look k", "*1 k", "COMMAND GETKEYS eval s 0", "*0", "COMMAND GETKEYS eval s 2 a b c", "*2 a b",
		"COMMAND GETKEYS no k", "-"+ErrBadCommand, "COMMAND GETKEYS client no", "-"+ErrBadCommand,
		"COMMAND GETKEYS ping", "-"+ErrNoKeysCommand, "COMMAND GETKEYS client", "-"+ErrNoKeysCommand,
		"COMMAND GETKEYS client id", "-"+ErrNoKeysCommand, "COMMAND GETKEYS get", "-"+ErrBadCommandArgs,
		"COMMAND GETKEYS get a b", "-"+ErrBadCommandArgs, "COMMAND GETKEYS del", "-"+ErrBadCommandArgs,
		"COMMAND GETKEYS mset a", "-"+ErrBadCommandArgs, "COMMAND GETKEYS eval s", "-"+ErrBadCommandArgs,
		"COMMAND GETKEYS cl.take 0 a 1/1s", "-"+errBadCommandKeys, "COMMAND GETKEYS eval s x k", "*0",
		"COMMAND GETKEYS cl.take 9 a 1/1s", "-"+errBadCommandKeys)
	for _, n := range []int{1000, 1001, 1002, 2500} { // steps of a thousand
		var keys, pairs []string
		for i := range n {
			keys = append(keys, fmt.Sprintf("k%d", i))
			pairs = append(pairs, fmt.Sprintf("k%d", i), "v")
		}
		want := fmt.Sprintf("*%d %s", n, strings.Join(keys, " "))
		wants(t, h, "COMMAND GETKEYS del "+strings.Join(keys, " "), want, "COMMAND GETKEYS mset "+strings.Join(pairs, " "), want)
	}
}

const (
	docsGet    = "get *10 summary Gets. since 1.2.0 group string complexity O(1) arguments *1 *6 name key type key key_spec_index :0"
	docsDel    = "del *10 summary Deletes. since 0.1.0 group generic complexity O(N) arguments *1 *8 name key type key key_spec_index :0 flags *1 +multiple"
	docsRename = "rename *8 summary Renames. since 0.1.0 group generic complexity O(1)"
	docsTake   = "cl.take *12 summary Takes. since 0.1.0 group limits complexity O(1) module redis-cell arguments *2 *4 name n type integer *8 name ms type integer token LEASE flags *1 +optional"
	docsClient = "client *10 summary Clients. since 0.1.0 group connection complexity O(1) subcommands *6 client|id *8 summary Tells. since 0.1.0 group connection complexity O(1) " +
		"client|look *8 summary  since 0.1.0 group connection complexity O(1) client|help *8 summary Returns helpful text about the different subcommands. since 0.1.0 group connection complexity O(1)"
)

func TestDocs(t *testing.T) {
	h := described()
	wants(t, h, "COMMAND DOCS get", "*2 "+docsGet, "COMMAND DOCS GET no del get", "*4 "+docsGet+" "+docsDel,
		"COMMAND DOCS rename", "*2 "+docsRename, "COMMAND DOCS cl.take", "*2 "+docsTake, "COMMAND DOCS client", "*2 "+docsClient,
		"COMMAND DOCS no", "*0")
	if got := short(h.Do("COMMAND", "DOCS")); !strings.HasPrefix(got, "*16 "+docsTake+" "+docsClient+" "+docsDel) {
		t.Errorf("all: %s", got)
	}
	h.RESP3 = true
	wants(t, h, "COMMAND DOCS rename", "%1 "+strings.Replace(docsRename, "*8", "%4", 1))
}

// A choice and a block tell of their parts; a word may be optional and repeated at once.
func TestArguments(t *testing.T) {
	for usage, want := range map[string]string{
		"[NX|XX]":                            "*1 *8 name nx type oneof flags *1 +optional arguments *2 *6 name nx type pure-token token NX *6 name xx type pure-token token XX",
		"[AUTH username password]":           "*1 *8 name username type block flags *1 +optional arguments *2 *6 name username type string token AUTH *4 name password type string",
		"[ID client-id ...]":                 "*1 *8 name client-id type integer token ID flags *2 +optional +multiple",
		"pattern":                            "*1 *4 name pattern type pattern",
		"ON NOW [KEY key] LATER":             "*4 *6 name on type pure-token token ON *6 name now type pure-token token NOW *10 name key type key key_spec_index :0 token KEY flags *1 +optional *6 name later type pure-token token LATER",
		"ALL ...":                            "*1 *8 name all type pure-token token ALL flags *1 +multiple",
		"increment [EXAT unix-time-seconds]": "*2 *4 name increment type integer *8 name unix-time-seconds type unix-time token EXAT flags *1 +optional",
		"source destination":                 "*2 *6 name source type key key_spec_index :0 *6 name destination type key key_spec_index :0",
	} {
		c := command.Call{}
		if replyArguments(&c, parseUsage(usage)); short(string(c.Out)) != want {
			t.Errorf("%s:\n got %s\nwant %s", usage, short(string(c.Out)), want)
		}
	}
}

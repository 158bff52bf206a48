package decide

import (
	"regexp"
	"strings"
	"testing"
)

// inWords is a reply without the lengths of its texts, and in one line.
func inWords(reply string) string {
	reply = regexp.MustCompile(`\$\d+\r\n`).ReplaceAllString(reply, "")
	return strings.TrimSpace(strings.NewReplacer("\r\n:", " ", "\r\n", " ").Replace(reply))
}

func TestNamed(t *testing.T) {
	w := newWorld(t)
	w.do("CL.POLICY", "SET", "gold", "3/1m", "9/1h,algo=window")
	w.do("CL.RULE", "ADD", "DENY", "bad")
	const none = "bound_by $-1 policy $-1"
	for _, test := range [][2]string{
		{"CL.TAKE a 5/1m NAMED", "*18 limited 0 limit 5 remaining 4 retry_after -1 reset_after 12000 granted 1 wait 0 " +
			"bound_by 5/1m policy $-1"},
		{"CL.TAKE a 5/1m COST 5 named US", "*18 limited 1 limit 5 remaining 4 retry_after 12000000 " +
			"reset_after 12000000 granted 0 wait 0 bound_by 5/1m policy $-1"},
		{"CL.TAKE b 5/1m @gold NAMED", "*18 limited 0 limit 3 remaining 2 retry_after -1 reset_after 3600000 granted 1 wait 0 " +
			"bound_by 3/1m policy gold"},
		{"CL.TAKE b 5/1m @gold COST 4 NAMED FULL", "*20 limited 1 limit 3 remaining 2 retry_after -1 " +
			"reset_after 3600000 granted 0 wait 0 bound_by 3/1m policy gold full " +
			"*3 *12 limited 0 limit 5 remaining 4 retry_after -1 reset_after 12000 name $-1 " +
			"*12 limited 1 limit 3 remaining 2 retry_after -1 reset_after 20000 name $-1 " +
			"*12 limited 0 limit 9 remaining 8 retry_after -1 reset_after 3600000 name $-1"},
		{"CL.TAKE h 5/1m 9/1m,name=tokens COST 3 OF tokens NAMED FULL", "*20 limited 0 limit 9 remaining 6 retry_after -1 " +
			"reset_after 20001 granted 1 wait 0 bound_by 9/1m,name=tokens policy $-1 full " +
			"*2 *12 limited 0 limit 5 remaining 4 retry_after -1 reset_after 12000 name $-1 " +
			"*12 limited 0 limit 9 remaining 6 retry_after -1 reset_after 20001 name tokens"},
		{"CL.TAKE c 5/1m,algo=conc PEEK NAMED", "*20 limited 0 limit 5 remaining 5 retry_after -1 " +
			"reset_after 0 granted 0 wait 0 lease 0 bound_by 5/1m,algo=conc policy $-1"},
		{"CL.TAKE c 5/1m,algo=conc PEEK NAMED FULL", "*22 limited 0 limit 5 remaining 5 retry_after -1 " +
			"reset_after 0 granted 0 wait 0 lease 0 bound_by 5/1m,algo=conc policy $-1 " +
			"full *1 *12 limited 0 limit 5 remaining 5 retry_after -1 reset_after 0 name $-1"},
		{"CL.TAKE q 1/1m RESERVE 60000", "*7 0 1 0 -1 60000 1 0"},
		{"CL.TAKE q 1/1m RESERVE 60000 NAMED", "*18 limited 0 limit 1 remaining 0 retry_after -1 " +
			"reset_after 120000 granted 1 wait 60000 bound_by 1/1m policy $-1"},
		{"CL.TAKE bad @gold NAMED", "*18 limited 1 limit 0 remaining 0 retry_after -1 reset_after 0 granted 0 wait 0 " + none},
		{"CL.MTAKE 2 m 5/1m n @gold NAMED", "*16 limited 0 bound 0 granted 1 retry_after -1 wait 0 bound_by 3/1m policy gold keys *3 " +
			"*12 limited 0 limit 5 remaining 4 retry_after -1 reset_after 12000 name $-1 " +
			"*12 limited 0 limit 3 remaining 2 retry_after -1 reset_after 20000 name $-1 " +
			"*12 limited 0 limit 9 remaining 8 retry_after -1 reset_after 3600000 name $-1"},
		{"CL.MTAKE 2 m 5/1m o 1/1m COST 2 US NAMED", "*16 limited 1 bound 2 granted 0 retry_after -1 wait 0 bound_by 1/1m policy $-1 " +
			"keys *2 " +
			"*12 limited 0 limit 5 remaining 4 retry_after -1 reset_after 12000000 name $-1 " +
			"*12 limited 1 limit 1 remaining 1 retry_after -1 reset_after 0 name $-1"},
		{"CL.MTAKE 1 p 5/1m,algo=conc PEEK NAMED", "*18 limited 0 bound 0 granted 0 retry_after -1 wait 0 lease 0 " +
			"bound_by 5/1m,algo=conc policy $-1 " +
			"keys *1 *12 limited 0 limit 5 remaining 5 retry_after -1 reset_after 0 name $-1"},
		{"CL.MTAKE 2 bad 5/1m o 1/1m NAMED", "*16 limited 1 bound 1 granted 0 retry_after -1 wait 0 " + none + " keys *2 " +
			"*12 limited 1 limit 0 remaining 0 retry_after -1 reset_after 0 name $-1 " +
			"*12 limited 0 limit 1 remaining 1 retry_after -1 reset_after 0 name $-1"},
		{"CL.MTAKE 1 p 5/1m NAMED FULL", strings.TrimSpace(fails(errFull))},
		{"CL.TAKE p 5/1m NAMED NAMED", "-ERR option NAMED is given twice"},
	} {
		if got := inWords(w.do(strings.Fields(test[0])...)); got != test[1] {
			t.Errorf("%s:\n got %s\nwant %s", test[0], got, test[1])
		}
	}
	lease := regexp.MustCompile(`wait 0 lease [1-9]\d+ bound_by`)
	for _, line := range []string{"CL.TAKE c 5/1m,algo=conc NAMED", "CL.MTAKE 1 c 5/1m LEASE 9 NAMED"} {
		if got := inWords(w.do(strings.Fields(line)...)); !lease.MatchString(got) {
			t.Errorf("%s: %s", line, got)
		}
	}
	w.RESP3 = true
	const want = "%10 limited 0 limit 5 remaining 5 retry_after -1 reset_after 0 granted 0 wait 0 bound_by 5/1m policy _ full " +
		"*1 %6 limited 0 limit 5 remaining 5 retry_after -1 reset_after 0 name _"
	if got := inWords(w.do("CL.TAKE", "new", "5/1m", "NAMED", "FULL", "PEEK")); got != want {
		t.Errorf("in RESP3: %s", got)
	}
}

// Calls with names and without go through the same batch, and each is answered in its own way.
func TestNamedInPipelines(t *testing.T) {
	w := newWorld(t)
	plain, named := frame("CL.TAKE", "k", "5/1m"), frame("CL.TAKE", "k", "5/1m", "NAMED")
	const want = "*7 0 5 4 -1 12000 1 0 " +
		"*18 limited 0 limit 5 remaining 3 retry_after -1 reset_after 24000 granted 1 wait 0 bound_by 5/1m policy $-1 *7 0 5 2 -1 36000 1 0"
	if got := inWords(w.send(plain + named + plain)); got != want || len(w.asked) != 1 {
		t.Errorf("in %d batches: %s", len(w.asked), got)
	}
}

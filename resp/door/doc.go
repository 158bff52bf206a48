// Package door is where calls come in that do not speak RESP, and what they have in common with those that do.
//
//	JSON, /check ─▶ Take, Throttle, ChangeLease, Show ─┐
//	Envoy        ─▶ Decide ────────────────────────────┼─▶ question ─▶ decide ─▶ store
//	RESP         ─▶ session ─▶ batch or handler ───────┴─────────────────────▶ store
//
// Whoever serves another protocol translates its calls into values, and the answers back:
//
//	err := d.Take(ctx, from, []door.Ask{{Key: "k", Limits: []string{"100/1m"}}}, func(t *door.Taken, err error) { … })
//
// # How a call that does not speak RESP is decided
//
// A question is a call by its values. Door.decide in question.go asks each in the same way: the server is open for it, its caller has the
// rights, monitors see it, the store answers at once or later, the answer is counted, and is on the disk where replies wait for that. A new
// ability is a field of Ask and of Taken, and each protocol gives it a name.
//
// # What sessions share with it
//
// Sessions have a Door in them: the store, the users, the counts, the disk and the log are the same for all.
//
// A panic is a fault in this program, and costs no more than it may have broken. It is logged with its stack and counted
// (handler_panics). A panic in store, cell or persistence, or in a function that they call, ends the process with one line in the log and
// exit code 1: a shard may be locked or half changed, and the append-only file may lack something.
package door

package view

import (
	"math/rand/v2"
	"strconv"
	"time"

	"celld/store/remote/link"
)

// Turns are no guess, and save the engine nothing: they keep calls from failing. Of 40 instances that each changed one key all the time,
// 1.5 to 7 % of the calls failed without turns, as they had not got through within 500 ms, and none with them. With 8, none failed
// without them, either, and a call took 150 µs of the engine's CPU and not 280.
//
// Of views that change the same key at once, one stores, and the others conflict. One that has conflicted thrice queues for a
// turn: its name goes to the end of a list on the engine, beside the key. While there is a list, only its first may store, and all
// others queue, too, so nobody overtakes. Who has stored leaves it. A list lives for 50 ms after the last turn: so one whose celld
// is gone holds up others for that long, after which they queue anew.
//
// Stores that each changed one key all the time, on 2 loaded cores, without turns and with them:
//
//	stores   conflicts a change    worst           changes a second   least to most of a store
//	     2   0.8       0.4 to 0.6   6 ms    15 ms   8,000   7,400     7,901 to 8,083   7,256 to 7,312
//	     8   5.7       0.01        58 ms    19 ms   3,500   3,200       812 to 924       803 to 806
//	    20   13        0.01       409 ms    41 ms     880   1,900        60 to 130       193 to 194

// turn is a view's place in such a queue.
type turn struct {
	queue     string // the list's key; "": it has asked for none, or the key's braces allow none
	name      string // of the view
	early     bool   // it queues before it has read, if others do
	conflicts int
	taken     bool  // it is in the list
	none      bool  // it asks for none: while a Cluster moves the slot, it refuses scripts with a key that is not there, as lists mostly are
	before    int64 // how many are before it
}

const (
	conflictsBeforeTurn = 3
	turnMs              = 50
	mostTurns           = 256 // in a list; others look again later
)

// turnsSuffix ends the names of lists. No caller is likely to have a key of such a name, and nobody is told it.
const turnsSuffix = "\x00turns"

// ask returns the keys of a script that respects turns, and its first arguments: the view's name, empty where there can be no list, and
// whether it begins one.
func (t *turn) ask(s *Views, keys []string) (with, args []string) {
	if t.name == "" {
		t.name = strconv.FormatUint(rand.Uint64(), 36)
	}
	if t.queue = s.Link.Beside(keys[0], turnsSuffix); t.queue == "" || t.none {
		return keys, []string{"", ""}
	}
	begins := ""
	if t.conflicts >= conflictsBeforeTurn-1 {
		begins = "1"
	}
	return append(keys, t.queue), []string{t.name, begins}
}

// pause is how long a view waits before it looks again. A turn takes one or two round trips. With pauses of 1/2 of one for each that is
// before it, 20 stores made 1,600 changes a second, with 1/4 2,200, and with 1/8 1,100.
func (t *turn) pause(roundTrip time.Duration) time.Duration {
	return min(time.Duration(t.before)*roundTrip/4, turnMs*time.Millisecond/2)
}

// leaveTurns ends the turn of a view that has not stored.
func (v *View) leaveTurns() {
	if v.turn.taken {
		v.turn.taken = false
		v.views.Link.Send(&link.Request{Keys: []string{v.turn.queue}, Args: []string{"LREM", "1", v.turn.name}, Deadline: v.views.deadline(),
			Done: link.Ignore})
	}
}

// turnLua defines how many are before a view, -1 where nobody queues. The last of KEYS is the list, if the view has a name. Callers who
// choose whole keys may have made a limit of the list's name: then nobody queues.
var turnLua = `
local count, me, turns = #KEYS, ARGV[1], nil
if me ~= '' then
  turns = KEYS[count]
  count = count - 1
end
local function before(begins)
  if not turns then return -1 end
  local all = redis.pcall('LRANGE', turns, 0, -1)
  if all.err or #all == 0 and not begins then return -1 end
  for i, name in ipairs(all) do
    if name == me then return i - 1 end
  end
  if #all < ` + strconv.Itoa(mostTurns) + ` then redis.call('RPUSH', turns, me) end
  if #all == 0 then redis.call('PEXPIRE', turns, ` + strconv.Itoa(turnMs) + `) end
  return #all
end
`

package view

import (
	"math/rand/v2"
	"strconv"
	"time"

	"celld/store/remote/link"
)

// Tickets keep changes from failing. Of views that change the same key at once, one stores, and the others conflict. A view that has
// conflicted thrice draws a ticket: its name goes to the end of a list on the engine, beside the key. While there is a list, only its first
// may store, and all others draw tickets, too: so nobody overtakes. A view that has stored leaves the list. The list lives for 50 ms after
// the last change: so a view whose instance is gone holds up others for that long, and then they draw anew.
//
// When each of 40 instances changed one key all the time, 1.5 to 7 % of the calls failed without tickets, as they had not got through
// within 500 ms, and none with them. With 8 instances none failed either way, and a call took 150 µs of the engine's CPU with tickets, not
// 280.
//
// Stores that each changed one key all the time, on 2 loaded cores, without tickets and with them:
//
//	stores   conflicts a change    worst           changes a second   least to most of a store
//	     2   0.8       0.4 to 0.6   6 ms    15 ms   8,000   7,400     7,901 to 8,083   7,256 to 7,312
//	     8   5.7       0.01        58 ms    19 ms   3,500   3,200       812 to 924       803 to 806
//	    20   13        0.01       409 ms    41 ms     880   1,900        60 to 130       193 to 194

// ticket is a view's place in such a list.
type ticket struct {
	list      string // the list's key; "": the view has asked for none, or the key's braces allow none
	name      string // of the view
	early     bool   // it draws a ticket before it has read, if there is a list
	none      bool   // it asks for none: a Cluster that moves a hash slot refuses scripts with a key that is not there, as lists mostly are
	assumed   bool   // the keys were taken to be absent: a conflict only tells what they hold
	conflicts int
	place     int64 // in the list, from 1; 0: it is not in it
}

const (
	conflictsBeforeTicket = 3
	ticketMs              = 50
	mostTickets           = 256 // in a list; others look again later
)

// ticketsSuffix ends the names of lists. Callers are unlikely to choose such a name, and never see it.
const ticketsSuffix = "\x00turns"

// arguments returns the keys of a script that heeds tickets, and its first arguments: the view's name, empty if there can be no list, and
// whether it begins one.
func (t *ticket) arguments(s *Views, keys []string) (with, args []string) {
	if t.name == "" {
		t.name = strconv.FormatUint(rand.Uint64(), 36)
	}
	if t.list = s.Link.Beside(keys[0], ticketsSuffix); t.list == "" || t.none {
		return keys, []string{"", ""}
	}
	begins := ""
	if t.conflicts >= conflictsBeforeTicket-1 {
		begins = "1"
	}
	return append(keys, t.list), []string{t.name, begins}
}

// pause is how long a view waits before it looks again. A change takes one or two round trips. With pauses of 1/2 of one for each view
// before it, 20 stores made 1,600 changes a second, with 1/4 2,200, and with 1/8 1,100.
func (t *ticket) pause(roundTrip time.Duration) time.Duration {
	return min(time.Duration(t.place-1)*roundTrip/4, ticketMs*time.Millisecond/2)
}

// giveUpTicket takes a view that has not stored out of the list.
func (v *View) giveUpTicket() {
	if v.ticket.place > 0 {
		v.ticket.place = 0
		v.views.Link.Send(&link.Request{Keys: []string{v.ticket.list}, Args: []string{"LREM", "1", v.ticket.name},
			Deadline: v.views.deadline(), Done: link.Ignore})
	}
}

// ticketLua defines how many are before a view; -1 if there is no list. The last of KEYS is the list, if the view has a name. Callers who
// choose whole keys may have made a limit of the list's name: then nobody draws tickets.
var ticketLua = `
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
  if #all < ` + strconv.Itoa(mostTickets) + ` then redis.call('RPUSH', turns, me) end
  if #all == 0 then redis.call('PEXPIRE', turns, ` + strconv.Itoa(ticketMs) + `) end
  return #all
end
`

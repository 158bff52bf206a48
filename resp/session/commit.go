package session

import (
	"celld/resp/decisions"
	"celld/resp/door"
	"celld/resp/wire"
)

// round is what a session has done since the last commit to the disk. It exists only where replies wait for the disk.
type round struct {
	sent    int // bytes passed to the transport
	writes  []sentPart
	decided decisions.Batch
	changed bool // something, whether or not it is replied to
}

// sentPart is the position of replies to writes, in bytes since the last commit.
type sentPart struct {
	start, end int
	replies    int
}

// wrote marks out[mark:] as replies to writes.
func (r *round) wrote(mark, end, replies int) {
	r.changed = true
	r.writes = append(r.writes, sentPart{r.sent + mark, r.sent + end, replies})
}

// unwrite forgets the replies to writes in out[mark:], which are not sent after all.
func (r *round) unwrite(mark int) {
	if r == nil {
		return
	}
	for last := len(r.writes) - 1; last >= 0 && r.writes[last].start >= r.sent+mark; last-- {
		r.writes = r.writes[:last]
	}
}

// confirm ends the round: see Session.Confirm.
func (r *round) confirm(sent []byte, err error) []byte {
	r.decided.Settle(0, err)
	r.decided = decisions.Batch{} // most connections are idle
	if err != nil {
		text := wire.AppendError(nil, door.Misconf(err).Text)
		whole, at := sent, 0
		sent = nil
		for _, w := range r.writes {
			if w.end <= len(whole) && w.start >= at {
				sent = append(sent, whole[at:w.start]...)
				for range w.replies {
					sent = append(sent, text...)
				}
				at = w.end
			}
		}
		sent = append(sent, whole[at:]...)
	}
	r.sent, r.writes, r.changed = 0, r.writes[:0], false
	return sent
}

package resp

import (
	"fmt"

	"celld/resp/decisions"
	"celld/resp/latency"
	"celld/resp/wire"
)

// round is what a session has done since the last commit to the disk. It exists only where replies wait for the disk.
type round struct {
	sent    int // bytes passed to the transport
	writes  []sentPart
	decided decisions.Batch
	changed bool // something, whether or not it is replied to
}

// inRound returns the session's round. A connection that has never waited for the disk has none yet.
func (s *Session) inRound() *round {
	if s.round == nil {
		s.round = &round{}
	}
	return s.round
}

// noteSent counts bytes passed to the transport.
func (s *Session) noteSent(bytes int) {
	if s.srv.synchronous {
		s.inRound().sent += bytes
	}
}

// countDecisions adds the batch's decisions so far to the totals, or to the session's round where replies wait for the disk. Those of a
// visit count when it is stored, as it may have to run again.
func (s *Session) countDecisions() {
	d := &s.scratch.decider.Decided
	switch {
	case s.scratch.visit != nil:
		return
	case s.srv.synchronous:
		s.inRound().decided.AddAll(d, s.scratch.lane)
		d.Clear()
	default:
		d.Settle(s.scratch.lane, nil)
	}
}

// sentPart is the position of replies to writes, in bytes since the last commit.
type sentPart struct {
	start, end int
	replies    int
}

// commit returns when the changes so far are on the disk.
func (srv *service) commit() error {
	startNS := srv.clock()
	err := srv.persist.Commit()
	srv.latency.Note(latency.Fsync, srv.clock()-startNS)
	return err
}

// wrote marks out[mark:] as replies to writes.
func (r *round) wrote(mark, end, replies int) {
	r.changed = true
	r.writes = append(r.writes, sentPart{r.sent + mark, r.sent + end, replies})
}

// Wrote reports whether the session has run a write since the last Confirm, even one without a reply.
func (s *Session) Wrote() bool { return s.round != nil && s.round.changed }

// unwrite forgets the replies to writes in out[mark:], which are not sent after all.
func (r *round) unwrite(mark int) {
	if r == nil {
		return
	}
	for last := len(r.writes) - 1; last >= 0 && r.writes[last].start >= r.sent+mark; last-- {
		r.writes = r.writes[:last]
	}
}

// Confirm takes all bytes that the session has sent since the last Confirm, and the error of writing its changes to the disk. It
// returns the bytes to pass on. After an error, these answer each write with that error in place of its reply.
func (s *Session) Confirm(sent []byte, err error) []byte {
	if len(sent) > 0 {
		s.client.LastNS.Store(s.srv.clock()) // waiting for the disk is not idle time
	}
	r := s.inRound()
	r.decided.Settle(0, err)
	r.decided = decisions.Batch{} // most connections are idle
	if err != nil {
		text := wire.AppendError(nil, fmt.Sprintf(errMisconf, err))
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

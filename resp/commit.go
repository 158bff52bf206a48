package resp

import (
	"fmt"

	"celld/resp/wire"
)

// round is what a session has done since the last commit.
type round struct {
	sent    int // bytes, to the transport
	writes  []sentPart
	decided decisions
}

// inRound returns the session's round. An idle connection that has never waited for the disk has none.
func (s *Session) inRound() *round {
	if s.round == nil {
		s.round = &round{}
	}
	return s.round
}

// noteSent counts what the transport has been given.
func (s *Session) noteSent(bytes int) {
	if s.srv.synchronous {
		s.inRound().sent += bytes
	}
}

// sentPart is a part of what a session has sent since the last commit.
type sentPart struct {
	start, end int
	replies    int
}

// commit has a round's changes on the disk.
func (srv *Server) commit() error {
	startNS := srv.clock()
	err := srv.persist.Commit()
	nowNS := srv.clock()
	srv.slow(eventFsync, nowNS, nowNS-startNS)
	return err
}

// noteWrites marks what stands in the output from mark on as replies to writes.
func (s *Session) noteWrites(mark, replies int) {
	r := s.inRound()
	r.writes = append(r.writes, sentPart{r.sent + mark, r.sent + len(s.out), replies})
}

// unwrite forgets the spans of replies that are not sent after all.
func (s *Session) unwrite(mark int) {
	if r := s.round; r != nil {
		for last := len(r.writes) - 1; last >= 0 && r.writes[last].start >= r.sent+mark; last-- {
			r.writes = r.writes[:last]
		}
	}
}

// Confirm takes what the session has sent since the last time, once its changes are on the disk, or the error that kept
// them from it: then each of its writes is answered by that.
func (s *Session) Confirm(sent []byte, err error) []byte {
	if len(sent) > 0 {
		s.client.lastNS.Store(s.srv.clock()) // the disk may have taken long
	}
	r := s.inRound()
	r.decided.settle(s.srv, err)
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
	r.sent, r.writes = 0, r.writes[:0]
	return sent
}

package resp

import "fmt"

// sentPart is a part of what a session has sent since the last commit.
type sentPart struct {
	start, end int
	replies    int
}

// refusing says whether no change may be made, as the disk does not take it.
func (s *Session) refusing() bool { return s.srv.synchronous && s.srv.persist.Refusal() != nil }

// mostNoted is how many bytes of limits are kept to be taken back, until sessions stop for a commit.
const mostNoted = 4 << 20

func (srv *Server) commitDue() bool { return srv.synchronous && srv.store.NotedBytes() > mostNoted }

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
	s.writes = append(s.writes, sentPart{s.held + mark, s.held + len(s.out), replies})
}

// unwrite forgets the spans of replies that are not sent after all.
func (s *Session) unwrite(mark int) {
	for last := len(s.writes) - 1; last >= 0 && s.writes[last].start >= s.held+mark; last-- {
		s.writes = s.writes[:last]
	}
}

// committed takes what the session has sent since the last time, once its changes are on the disk, or the error that kept
// them from it: then each of its writes is answered by that.
func (s *Session) committed(sent []byte, err error) []byte {
	if err != nil {
		text := "-" + fmt.Sprintf(errMisconf, err) + "\r\n"
		whole, at := sent, 0
		sent = nil
		for _, w := range s.writes {
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
	s.held, s.writes = 0, s.writes[:0]
	return sent
}

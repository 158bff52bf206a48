package resp

import "celld/store"

// suspension is what a session waits for: a batch that the limiter has not answered, or a visit to an engine.
type suspension interface {
	ready() bool       // it can go on
	resume(s *Session) // goes on, and may make the session wait again
	leave(s *Session)  // nobody will read the answer
	abandons() bool    // who closes its half of the connection gives the wait up
}

// resume answers what the session has waited for. Where the session has gone meanwhile, leave has ended the wait.
func (s *Session) resume() {
	if w := s.waits; w != nil {
		s.waits = nil
		w.resume(s)
	}
}

// leave ends a wait whose answer nobody will read.
func (s *Session) leave() {
	if w := s.waits; w != nil {
		s.waits = nil
		w.leave(s)
	}
}

// refuseWaiting answers all calls that wait as refused, and all that would from now on.
func (srv *service) refuseWaiting() {
	srv.stopping.refusing.Store(true)
	for _, c := range srv.clients.All() {
		c.Unblock(srv.port, store.ErrRefused)
	}
}

package resp

import (
	"context"
	"errors"

	"celld/resp/acl"
)

// ACL LOAD and ACL SAVE read and write a file, whose disk may be slow. So they do it in a goroutine, and their session waits. In MULTI,
// where no session can wait, they do it at once.

func cmdACLLoad(s *Session, _ [][]byte) { s.srv.readUsers()(s) }
func cmdACLSave(s *Session, _ [][]byte) { s.srv.writeUsers()(s) }

func farACLLoad(_ context.Context, s *Session, _ [][]byte, done func(func(*Session))) {
	s.srv.aside(s.srv.readUsers, done)
}

func farACLSave(_ context.Context, s *Session, _ [][]byte, done func(func(*Session))) {
	s.srv.aside(s.srv.writeUsers, done)
}

func noACLFile(s *Session) { s.call.Error(errACLFile) }

// readUsers reads the file. What it returns takes it up, and replies.
func (srv *service) readUsers() func(*Session) {
	path := srv.cfg.ACLFile.Get()
	if path == "" {
		return noACLFile
	}
	file, err := acl.ReadFile(srv.users.Table(), path)
	if err != nil {
		text := "ERR %s"
		if errors.As(err, new(acl.Mistakes)) {
			text = errACLLoad
		}
		return func(s *Session) { s.call.Error(text, err) }
	}
	return func(s *Session) {
		s.alone(func() {
			s.srv.endSessionsOf(s, s.srv.users.Replace(file)...)
			s.checkRights()
			s.noteUsers("users loaded", "aclfile", path)
			s.call.OK()
		})
	}
}

// writeUsers writes the file. Two at a time could leave the older users in it.
func (srv *service) writeUsers() func(*Session) {
	path := srv.cfg.ACLFile.Get()
	if path == "" {
		return noACLFile
	}
	srv.savingUsers.Lock()
	defer srv.savingUsers.Unlock()
	if err := srv.users.Save(path); err != nil {
		srv.log.WarnSeldom("users could not be saved", "aclfile", path, "error", err)
		return func(s *Session) { s.call.Error(errACLSave) }
	}
	return func(s *Session) { s.call.OK() }
}

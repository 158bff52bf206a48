package resp

import (
	"bytes"
	"errors"
	"strings"

	"celld/persistence"
	"celld/persistence/dir"
	"celld/resp/command"
)

// onFiles is a handler of a command on files, which a server has only for keys of its own.
func onFiles(run func(*Session, [][]byte)) func(*command.Call) {
	return onSession(func(s *Session, args [][]byte) {
		if !s.srv.port.Here() {
			s.call.Error(errEngineKeeps, strings.ToUpper(s.call.Row.Name))
			return
		}
		run(s, args)
	})
}

func cmdSave(s *Session, _ [][]byte) {
	switch err := s.srv.persist.Save(); {
	case errors.Is(err, persistence.ErrSaving):
		s.call.Error(errSaving)
	case errors.Is(err, dir.ErrInUse):
		s.call.Error("ERR %s", err)
	case err != nil:
		s.call.Error("ERR")
	default:
		s.call.OK()
	}
}

func cmdBgsave(s *Session, args [][]byte) {
	schedule := len(args) == 2 && bytes.EqualFold(args[1], []byte("SCHEDULE"))
	if len(args) > 1 && !schedule {
		s.call.Error(errSyntax)
		return
	}
	if s.tx.running {
		s.replyStarted(s.srv.persist.ScheduleSave(), statusSaveScheduled)
		return
	}
	switch err := s.srv.persist.BackgroundSave(schedule); {
	case errors.Is(err, persistence.ErrRewriting) && schedule:
		s.call.Status(statusSaveScheduled)
	case errors.Is(err, persistence.ErrRewriting):
		s.call.Error(errBgsaveRewriting)
	default:
		s.replyStarted(err, "Background saving started")
	}
}

func cmdBgrewriteaof(s *Session, _ [][]byte) {
	if s.tx.running {
		s.replyStarted(s.srv.persist.ScheduleRewrite(), statusRewriteScheduled)
		return
	}
	err := s.srv.persist.Rewrite()
	if errors.Is(err, persistence.ErrSaving) {
		s.call.Status(statusRewriteScheduled)
		return
	}
	s.replyStarted(err, "Background append only file rewriting started")
}

// In a transaction, Redis cannot fork and so only schedules. celld would read the store while the transaction has changed half of
// it, so it schedules as well.
const (
	statusSaveScheduled    = "Background saving scheduled"
	statusRewriteScheduled = "Background append only file rewriting scheduled"
)

// replyStarted answers that something was started or scheduled, or why it was not.
func (s *Session) replyStarted(err error, started string) {
	switch {
	case errors.Is(err, persistence.ErrSaving):
		s.call.Error(errSaving)
	case errors.Is(err, persistence.ErrRewriting):
		s.call.Error(errRewriting)
	case err != nil:
		s.call.Error("ERR %s", err)
	default:
		s.call.Status(started)
	}
}

func cmdLastsave(s *Session, _ [][]byte) {
	s.call.Int(s.srv.store.WallNS(s.srv.persist.Status().LastSaveNS) / 1e9)
}

// maySave claims the directory for the snapshots that CONFIG SET save asks for. It is an error if another process uses the
// directory. Other faults may pass, and each snapshot that fails reports them.
func (srv *Server) maySave(points string) error {
	if points == "" {
		return nil
	}
	if err := srv.persist.Claim(); errors.Is(err, dir.ErrInUse) {
		return err
	}
	return nil
}

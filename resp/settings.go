package resp

import (
	"errors"
	"strings"

	"celld/persistence"
	"celld/persistence/dir"
	"celld/resp/acl"
	"celld/resp/command"
	"celld/resp/command/admin"
	"celld/resp/command/limit"
	"celld/resp/config"
	"celld/resp/session"
	"celld/resp/watch"
)

// Files are what the files of policies and users hold at the start. The zero value is those of no files.
type Files struct {
	policies limit.File
	users    *acl.File
	seen     watch.Contents
}

// ReadFiles reads --policies and --aclfile, where they are set. The error joins one for each bad line. Call it before other files that
// settings name are read, so that no change of them is missed.
func ReadFiles(cfg *config.Config) (f Files, err error) {
	f.seen = watch.See(cfg)
	if path := cfg.PoliciesFile.Get(); path != "" {
		f.policies, err = limit.ReadFile(path, cfg.LogMax.Get())
	}
	if path := cfg.ACLFile.Get(); path != "" {
		users, wrong := acl.ReadFile(tableOf(cfg).ACL(), path)
		mistakes := acl.Mistakes(nil)
		if errors.As(wrong, &mistakes) {
			wrong = nil
			for _, sentence := range mistakes {
				wrong = errors.Join(wrong, errors.New(strings.TrimSuffix(sentence, ".")))
			}
		}
		f.users, err = users, errors.Join(err, wrong)
	}
	return f, err
}

// Lines are the policies and rules as they are understood, in the form of the file.
func (f Files) Lines() (lines []string) {
	for _, p := range f.policies.Policies {
		lines = append(lines, limit.PolicyLine(p))
	}
	for _, r := range f.policies.Rules {
		lines = append(lines, limit.RuleLine(r))
	}
	return lines
}

// Warnings are lines about what --check lets pass, and somebody should look at.
func (f Files) Warnings() []string { return f.policies.Warnings() }

// configCommands is what CONFIG needs of the server.
func (srv *Server) configCommands(sessions *session.Service) config.Commands {
	return config.Commands{
		Config:  sessions.Config,
		Secrets: func(c *command.Call) bool { return c.Connection().Client().User.Load().Rights().MayAll() },
		ResetStat: func(c *command.Call) {
			c.CountDecisions()
			srv.metrics.Reset(c.NowNS)
			sessions.ResetCommands()
		},
	}
}

// followSettings puts settings into effect, now and when CONFIG SET changes them.
func (srv *Server) followSettings() {
	cfg := srv.sessions.Config
	cfg.MaxKeys.OnSet(func(int64) { srv.limitKeys() })
	cfg.MaxMemory.OnSet(func(int64) {
		srv.limitKeys()
		srv.tellMemory(srv.upkeep.clientsHold.Load())
	})
	cfg.MaxMemoryPolicy.OnSet(func(string) { srv.limitKeys() })
	cfg.MaxClients.Check(srv.sockets.MayServe)
	cfg.AppendFsync.Check(func(word string) error { return srv.sessions.Persist.MaySetFsync(persistence.ParseFsync(word)) })
	cfg.AppendFsync.OnSet(func(word string) { _ = srv.sessions.Persist.SetFsync(persistence.ParseFsync(word)) }) // Check allowed it
	cfg.Save.Check(func(points string) error {
		if !srv.sessions.Port.InProcess() {
			return noFilesIf(points != "")
		}
		return srv.maySave(points)
	})
	cfg.AppendOnly.Check(func(on bool) error {
		switch {
		case !srv.sessions.Port.InProcess():
			return noFilesIf(on)
		case on != cfg.AppendOnly.Get():
			return persistence.ErrNeedsRestart
		}
		return nil
	})
}

// noFilesIf is the error of a setting that asks for files.
func noFilesIf(asked bool) error {
	if asked {
		return errors.New("with --store there is nothing to save: the engine keeps the keys")
	}
	return nil
}

// maySave claims the directory for the snapshots that CONFIG SET save asks for. It is an error if another process uses the
// directory. Other faults may pass, and each snapshot that fails reports them.
func (srv *Server) maySave(points string) error {
	if points == "" {
		return nil
	}
	if err := srv.sessions.Persist.Claim(); errors.Is(err, dir.ErrInUse) {
		return err
	}
	return nil
}

// admin is what the commands of operators need of the server.
func (srv *Server) admin() admin.Server {
	o := admin.Server{Config: srv.sessions.Config, Metrics: srv.metrics, Heap: &srv.sessions.Heap, Table: srv.sessions.Store, Life: srv,
		Log: srv.sessions.Log.Logger, ClientBytes: srv.sessions.Clients.Bytes}
	if srv.sessions.Port.InProcess() {
		o.Disk = srv.sessions.Persist
	}
	return o
}

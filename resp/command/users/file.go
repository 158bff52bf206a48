package users

import (
	"errors"

	"celld/resp/acl"
	"celld/resp/client"
	"celld/resp/command"
)

// offload does the work of ACL LOAD and ACL SAVE, which read and write a file whose disk may be slow, in a goroutine. In MULTI, where no
// connection can wait, it does it at once.
func offload(c *command.Call, work func() func(*command.Call)) {
	if !c.MayOffload() {
		work()(c)
		return
	}
	c.Offload(false, func([][]byte) command.Work { return work })
}

func noFile(c *command.Call) { c.Error(errACLFile) }

// load reads the file, then puts its users to use and replies.
func (f *family) load(c *command.Call, own command.Connection) {
	s := f.server()
	offload(c, func() func(*command.Call) {
		if s.File == "" {
			return noFile
		}
		file, err := acl.ReadFile(s.Users.Table(), s.File)
		if err != nil {
			text := "ERR %s"
			if errors.As(err, new(acl.Mistakes)) {
				text = errACLLoad
			}
			return func(c *command.Call) { c.Error(text, err) }
		}
		return func(c *command.Call) {
			c.Alone(func() {
				s.end(own, client.Of(s.Users.Replace(file)))
				s.Saved()
				c.OK()
			})
		}
	})
}

// write writes the file. Two at a time could leave the older users in it.
func (f *family) write() func(*command.Call) {
	s := f.server()
	if s.File == "" {
		return noFile
	}
	f.saving.Lock()
	defer f.saving.Unlock()
	if err := s.Users.Save(s.File); err != nil {
		s.Log.WarnLimited("users could not be saved", "aclfile", s.File, "error", err)
		return func(c *command.Call) { c.Error(ErrACLSave) }
	}
	s.Saved()
	return func(c *command.Call) { c.OK() }
}

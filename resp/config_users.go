package resp

import (
	"celld/resp/acl"
)

// usersConfig are the settings of users.
type usersConfig struct {
	file      *param[string]
	logMaxLen *param[int64]

	read *acl.File // what the file had at the start; nil: there is none
}

func (c *usersConfig) rows() []Setting {
	return []Setting{
		{Name: "aclfile", Group: groupSecurity, Value: in(&c.file, newText("", "path", checkPath)), Help: "file of users and what they may do; ACL LOAD reads it again, ACL SAVE writes it"},
		{Name: "acllog-max-len", Group: groupSecurity, Value: in(&c.logMaxLen, newInt(128, 0, 1024, "n")), mutable: true, Help: "entries that ACL LOG keeps"},
	}
}

// load reads the file of users.
func (c *usersConfig) load() (err error) {
	if path := c.file.Get(); path != "" {
		c.read, err = acl.ReadFile(newACLTable(newCommandTable()), path)
	}
	return err
}

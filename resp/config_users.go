package resp

import (
	"celld/resp/acl"
)

// usersConfig are the settings of users.
type usersConfig struct {
	file      *param[string]
	logMaxLen *param[int64]

	probe         *param[string]
	probePassword *param[string]

	read *acl.File // what the file had at the start; nil: there is none
}

func (c *usersConfig) rows() []Setting {
	return []Setting{
		{Name: "aclfile", Group: groupSecurity, Value: in(&c.file, newText("", "path", checkPath)), Help: "file of users and what they may do; ACL LOAD reads it again, ACL SAVE writes it"},
		{Name: "acllog-max-len", Group: groupSecurity, Value: in(&c.logMaxLen, newInt(128, 0, 1024, "n")), mutable: true, Help: "entries that ACL LOG keeps"},
		{Name: "probe-user", Group: groupSecurity, Value: in(&c.probe, newText("", "name", nil)), Help: "user that celld ping and celld ready authenticate as; empty: the default user"},
		{Name: "probe-password", Group: groupSecurity, Value: in(&c.probePassword, newSecret("password", hidden)), secret: true, Help: "its password; empty: that of --requirepass. Other users of the machine can see flags, so prefer the environment"},
	}
}

// load reads the file of users.
func (c *usersConfig) load() (err error) {
	if path := c.file.Get(); path != "" {
		c.read, err = acl.ReadFile(newACLTable(newCommandTable(nil)), path)
	}
	return err
}

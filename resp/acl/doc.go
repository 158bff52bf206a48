// Package acl keeps users and their rights: the part of Redis's ACL that celld knows. It knows no sessions.
//
//	table := acl.NewTable(commands, compile)
//	users := acl.NewUsers(table)
//	err := users.Set("app", []string{"on", ">secret", "~app:*", "+cl.throttle"})
//	user := users.Authenticate([]byte("app"), []byte("secret")) // nil: WRONGPASS
//	user.Rights().MayRun(command, args)
//
// A User is a name that connections hold on to. Its Rights never change: a rule makes new ones, and the User points to them. So
// a check of a command takes no lock, and sees all of a change or nothing of it.
//
// Passwords are kept as their SHA-256 only, as in Redis's files.
package acl

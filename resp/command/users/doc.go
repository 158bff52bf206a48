// Package users is the commands on users and their rights, ACL and its subcommands.
package users

// Package admin is the commands of operators: figures of the server, its files, its end.
//
//	rows := admin.Rows(func() admin.Server { return server })
package admin

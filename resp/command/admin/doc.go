// Package admin has the commands of operators: what the server measures of itself, its files, its end.
//
//	rows := admin.Rows(func() admin.Server { return server })
package admin

//go:build linux

package main

import (
	"os"
	"regexp"
	"runtime"
	"strings"
)

// machine is where the figures were measured.
type machine struct {
	CPU    string `json:"cpu"`
	CPUs   int    `json:"cpus"`
	Kernel string `json:"kernel"`
	OS     string `json:"os"`
	Go     string `json:"go"`
	Disk   string `json:"disk"` // where the servers' files are
}

func thisMachine() machine {
	return machine{
		CPU:    fileMatch("/proc/cpuinfo", `(?m)^model name\s*: (.*)$`),
		CPUs:   runtime.NumCPU(),
		Kernel: fileMatch("/proc/sys/kernel/osrelease", `(.+)`),
		OS:     fileMatch("/etc/os-release", `(?m)^PRETTY_NAME="?([^"\n]*)`),
		Go:     runtime.Version(),
	}
}

func fileMatch(path, expr string) string {
	text, _ := os.ReadFile(path)
	if m := regexp.MustCompile(expr).FindSubmatch(text); m != nil {
		return strings.TrimSpace(string(m[1]))
	}
	return "unknown"
}

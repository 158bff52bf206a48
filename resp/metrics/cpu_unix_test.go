//go:build unix

package metrics

import (
	"fmt"
	"testing"
)

// INFO shows the CPU's time with six digits.
func TestCPU(t *testing.T) {
	info := New(Section{Name: "CPU", Read: CPU}).Info(0, "cpu")
	var system, user float64
	n, err := fmt.Sscanf(info,
		"# CPU\r\nused_cpu_sys:%f\r\nused_cpu_user:%f\r\nused_cpu_sys_children:0.000000\r\nused_cpu_user_children:0.000000\r\n",
		&system, &user)
	if n != 2 || err != nil || system+user <= 0 {
		t.Errorf("%s, %v", info, err)
	}
}

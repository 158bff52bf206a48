package script_test

import (
	"testing"

	"celld/resp/script/scripttest"
)

func TestLua(t *testing.T) { scripttest.Recorded(t, "testdata/lua.txt") }

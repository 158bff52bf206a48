// Limits draws what each algorithm of CL.TAKE does with the same traffic, by the arithmetic that decides in the server:
//
//	go -C examples run ./limits >examples/limits/limits.svg
package main

import "os"

func main() {
	os.Stdout.Write(draw(allCases()))
}

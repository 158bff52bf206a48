// Command run is one run of the simulation: it is compiled to WebAssembly, and the program simulation runs it in virtual time.
package main

import "celld/integration_test/simulation/world"

func main() { world.Main() }

package session

import "celld/resp/gate"

// Between calls do while no transaction or script is in its middle. While a script is busy it returns false.
func (srv *Service) Between(do func()) (did bool) {
	lane := srv.Execution.Lane(0)
	lane.RLock()
	defer lane.RUnlock()
	if srv.Gate.Has(gate.Busy) {
		return false
	}
	do()
	return true
}

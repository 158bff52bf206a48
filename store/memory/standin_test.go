package memory

import (
	"celld/store"
	"testing"
)

type nobody struct{}

func (nobody) Wake() {}

// A reservation behind a queue always finds a place, however many wait by then: its caller has been told a time. It takes that place
// from those who come later.
func TestAReservationFindsAPlace(t *testing.T) {
	s := New(Options{MaxWaiters: 1})
	r, a := &pending{TakeRequest: &store.TakeRequest{Calls: make([]store.Call, 1)}}, store.Access{}
	w, err := s.newWaiter(r, a, nobody{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.newWaiter(r, a, nobody{}); err != store.ErrTooManyWaiters {
		t.Errorf("a second that waits: %v", err)
	}
	booked, err := s.newWaiter(r, a, nil)
	if err != nil {
		t.Fatal(err)
	}
	if callers, _ := s.Waiting(); callers != 1 {
		t.Errorf("%d callers wait", callers)
	}
	w.gone()
	if _, err := s.newWaiter(r, a, nobody{}); err != store.ErrTooManyWaiters {
		t.Errorf("one that waits beside a reservation: %v", err)
	}
	booked.gone()
	if _, err := s.newWaiter(r, a, nobody{}); err != nil {
		t.Error(err)
	}
}

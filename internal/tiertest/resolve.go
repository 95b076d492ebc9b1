package tiertest

import (
	"fmt"
	"reflect"
	"slices"
)

// resolve finds an order of a group's calls in which the model gives the answers
// that the store gave, and ends in a state that accept takes. A call without an
// answer (nil) may be part of it or not. It returns the model in that state.
func resolve(m *model, calls []*call, answers []*outcome, accept func(*model) error) (*model, error) {
	s := search{calls: calls, answers: answers, accept: accept}
	all := make([]int, len(calls))
	for i := range all {
		all[i] = i
	}
	if found := s.from(m, all); found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("no order of the commands explains what the store did; the nearest one: %w", s.nearest)
}

type search struct {
	calls   []*call
	answers []*outcome
	accept  func(*model) error

	// nearest is why the order that explained most was refused.
	nearest error
	depth   int
}

func (s *search) refuse(left int, err error) {
	if done := len(s.calls) - left + 1; done > s.depth {
		s.nearest, s.depth = err, done
	}
}

func (s *search) from(m *model, left []int) *model {
	if !slices.ContainsFunc(left, func(i int) bool { return s.answers[i] != nil }) {
		err := s.accept(m)
		if err == nil {
			return m
		}
		s.refuse(0, err)
	}
	for k, i := range left {
		// A refused creation may have changed something all the same: it removes the
		// stream that had the name, if its lifetime is over.
		next := m.clone()
		call, answer := s.calls[i], s.answers[i]
		got := next.apply(call, answer)
		switch {
		case answer == nil && got.err != nil && call.op.New == 0:
			continue // it changed nothing, which leaving it out covers
		case answer != nil:
			if err := next.differs(call, got, *answer); err != nil {
				s.refuse(len(left), err)
				continue
			}
		}
		if found := s.from(next, slices.Delete(slices.Clone(left), k, k+1)); found != nil {
			return found
		}
	}
	return nil
}

// differs compares the answers of the model and of the store.
func (m *model) differs(c *call, want, got outcome) error {
	switch {
	case !reflect.DeepEqual(want.err, got.err):
		return fmt.Errorf("%s was answered with error %v, want %v", c.op.Do, got.err, want.err)
	case !reflect.DeepEqual(want.appended, got.appended):
		return fmt.Errorf("%s was answered with %+v, want %+v", c.op.Do, got.appended, want.appended)
	case want.trimmed != got.trimmed:
		return fmt.Errorf("trim was answered with %+v, want %+v", got.trimmed, want.trimmed)
	case !slices.Equal(want.passed, got.passed):
		return fmt.Errorf("%s passed over %v, want %v", c.op.Do, got.passed, want.passed)
	case want.created != got.created:
		return fmt.Errorf("%s made a stream: %t, want %t", c.op.Do, got.created, want.created)
	case got.record == nil:
		return nil
	}
	e := m.streams[m.names[got.record.Name]]
	if r := got.record; r.ID != e.id || r.Life != e.life || r.Tail != e.tail() || r.Earliest != e.earliest || r.Deadline != e.deadline || r.Closed != e.closed {
		return fmt.Errorf("%s was answered with a record of %s, life %d, tail %d, earliest %d, deadline %d; want %s, %d, %d, %d, %d",
			c.op.Do, r.ID, r.Life, r.Tail, r.Earliest, r.Deadline, e.id, e.life, e.tail(), e.earliest, e.deadline)
	}
	return nil
}

package committer

import "sync"

// running are the keys of the writes that have begun and are not answered.
type running struct {
	mu   sync.Mutex
	keys map[Key]*use
}

// use is a key in use by some writes.
type use struct {
	writes int
	ended  chan struct{} // closed with the last of them, if somebody waits for it
}

// enter says that a write under the key has begun. leave says that it is over.
func (r *running) enter(k Key) (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	u := r.keys[k]
	if u == nil {
		u = &use{}
		if r.keys == nil {
			r.keys = map[Key]*use{}
		}
		r.keys[k] = u
	}
	u.writes++
	return func() { r.leave(k, u) }
}

func (r *running) leave(k Key, u *use) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if u.writes--; u.writes > 0 {
		return
	}
	delete(r.keys, k)
	if u.ended != nil {
		close(u.ended)
	}
}

// under returns what tells the end of the writes under the key, nil if there are
// none.
func (r *running) under(k Key) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	u := r.keys[k]
	if u == nil {
		return nil
	}
	if u.ended == nil {
		u.ended = make(chan struct{})
	}
	return u.ended
}

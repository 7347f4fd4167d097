package sqlite_test

import (
	"fmt"
	"os"
	"testing"
	"time"
)

func TestZZFull(t *testing.T) {
	s := openAt(t, "/tmp/small/l.db")
	do(t, s, "open", opening(1_000_000_00))
	ok, bad := 0, 0
	for i := range 3000 {
		_, err := s.Do(t.Context(), ask(fmt.Sprintf("k%d", i)), refund(1))
		if err != nil {
			if bad++; bad == 1 {
				t.Log(err)
			}
			if bad > 3 {
				break
			}
			continue
		}
		ok++
	}
	a := account(t, s)
	t.Log(ok, bad, a.Version(), a.Balance())
	os.WriteFile("/tmp/grow", nil, 0o600)
	time.Sleep(4 * time.Second)
	_, err := s.Do(t.Context(), ask("after"), refund(1))
	t.Log(err, account(t, s).Version())
}

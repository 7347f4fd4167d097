package collector

import (
	"runtime/debug"
	"testing"
)

func TestTheOperatorDecides(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	for name, tt := range map[string]struct {
		environ []string
		want    int
	}{
		"by default": {[]string{"GOGCX=1", "LOG_LEVEL=info"}, percent},
		"GOGC":       {[]string{"GOGC=50"}, 100},
		"GOMEMLIMIT": {[]string{"GOMEMLIMIT=1GiB"}, 100},
	} {
		debug.SetGCPercent(100)
		Tune(tt.environ)
		if got := debug.SetGCPercent(100); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

package side

import (
	"fmt"
	"strconv"
	"time"
)

// Unit is what a benchmark's figures count.
type Unit string

// The units.
const (
	PerSecond    Unit = "/s"
	Milliseconds Unit = "ms"
	Megabytes    Unit = "MB" // 10^6 bytes
)

// Text writes a figure for a reader: 61,234/s, 12.3 ms.
func (u Unit) Text(v float64) string {
	if u == PerSecond {
		return thousands(v) + "/s"
	}
	return strconv.FormatFloat(v, 'f', 1, 64) + " " + string(u)
}

func thousands(v float64) string {
	digits := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// In returns a duration in milliseconds, the figure of [Milliseconds].
func In(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func short(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d < time.Millisecond:
		return fmt.Sprintf("%.1f us", float64(d)/float64(time.Microsecond))
	}
	return fmt.Sprintf("%.1f ms", In(d))
}

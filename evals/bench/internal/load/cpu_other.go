//go:build !unix

package load

import "time"

// cpu is not known here, so that none is shown.
func cpu() time.Duration { return 0 }

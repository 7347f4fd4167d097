// Package release tells which build of the commands this is.
package release

import "runtime/debug"

// name is set at build time to the version that is released:
// -ldflags "-X github.com/refundledger/refundledger/cmd/internal/release.name=v1.2.3".
var name = "dev"

// Version is the release and the commit it was built from, where known.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return name
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return name + " " + s.Value[:12]
		}
	}
	return name
}

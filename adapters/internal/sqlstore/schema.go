package sqlstore

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// VersionTable holds which migrations a database has had.
const VersionTable = "schema_version"

// Newest returns the version of the last migration in the folder: the schema
// that this program knows.
func Newest(migrations fs.FS) (int64, error) {
	var newest int64
	files, err := fs.Glob(migrations, "*.sql")
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		number, _, _ := strings.Cut(f, "_")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("sqlstore: the migration %s has no number", f)
		}
		newest = max(newest, n)
	}
	return newest, nil
}

// VersionError says that a database has another schema than this program knows.
type VersionError struct {
	Have, Want int64
	// Migrate is the command that brings an older schema up to date.
	Migrate string
}

// Error names both versions and what to do.
func (e *VersionError) Error() string {
	switch {
	case e.Have > e.Want:
		return fmt.Sprintf("the schema of the database has version %d, and this program knows only up to %d: use a newer release of it", e.Have, e.Want)
	case e.Have == 0:
		return fmt.Sprintf("the database has no schema yet: run %s", e.Migrate)
	}
	return fmt.Sprintf("the schema of the database has version %d, and this program needs %d: run %s", e.Have, e.Want, e.Migrate)
}

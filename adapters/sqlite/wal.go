package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// SQLite writes each page of a commit to the write-ahead log with two calls of
// the system, hundreds for a batch. The file system named walVFS is the usual
// one but for the log: what is written to that is collected and written in large
// pieces, the last one with the frame that ends a transaction, and before
// anything else is done with the file. So nothing is synced, or there for other
// connections, later than before.
const walVFS = "refundledger-wal"

// walPiece is the most that is collected, and written at once. SQLite's own
// files take less than 128 KiB; a frame has up to 64 KiB.
const walPiece = 120 << 10

var (
	usual      *lib.Tsqlite3_vfs        // SQLite's own
	buffered   lib.Tsqlite3_vfs         // usual, but for opening a file
	logMethods lib.Tsqlite3_io_methods  // what SQLite calls for a log
	plain      *lib.Tsqlite3_io_methods // what a log has in usual
	opening    sync.Mutex               // guards the two above
	logs       sync.Map                 // address of a file -> *wal
)

// wal is a log that is open. SQLite does one thing at a time with a file.
type wal struct {
	at      int64 // where pending belongs in the file
	pending []byte
	ends    bool // the frame whose header came last ends a transaction
}

// registerWAL makes the file system known, next to the usual one.
func registerWAL() error {
	tls := libc.NewTLS()
	defer tls.Close()
	at := lib.Xsqlite3_vfs_find(tls, 0)
	if at == 0 {
		return errors.New("SQLite has no file system here")
	}
	name, err := libc.CString(walVFS)
	if err != nil {
		return err
	}
	usual = pointer[lib.Tsqlite3_vfs](at)
	buffered = *usual
	buffered.FpNext, buffered.FzName, buffered.FxOpen = 0, name, function(openFile)
	if rc := lib.Xsqlite3_vfs_register(tls, address(&buffered), 0); rc != lib.SQLITE_OK {
		return fmt.Errorf("SQLite takes no other file system: code %d", rc)
	}
	return nil
}

// openFile opens a file as usual, and comes between SQLite and a log.
func openFile(tls *libc.TLS, _, name, file uintptr, flags int32, out uintptr) int32 {
	rc := as[func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32](usual.FxOpen)(tls, address(usual), name, file, flags, out)
	if rc != lib.SQLITE_OK || flags&lib.SQLITE_OPEN_WAL == 0 {
		return rc
	}
	f := pointer[lib.Tsqlite3_file](file)
	methods := pointer[lib.Tsqlite3_io_methods](f.FpMethods)
	opening.Lock()
	defer opening.Unlock()
	if plain == nil {
		plain, logMethods = methods, *methods
		logMethods.FxClose, logMethods.FxRead, logMethods.FxWrite = function(closeLog), function(readLog), function(writeLog)
		logMethods.FxTruncate, logMethods.FxSync, logMethods.FxFileSize = function(truncateLog), function(syncLog), function(sizeOfLog)
	}
	if methods == plain { // all files without locks have these; another one stays as it is
		logs.Store(file, &wal{})
		f.FpMethods = address(&logMethods)
	}
	return rc
}

func logAt(file uintptr) *wal {
	w, _ := logs.Load(file)
	return w.(*wal)
}

// Each page in a log comes after a header of this length, which holds the number
// of pages of the file if the frame ends a transaction, else 0.
const (
	frameHeader = 24
	pagesAt     = 4
)

func writeLog(tls *libc.TLS, file, from uintptr, n int32, at int64) int32 {
	w := logAt(file)
	if at != w.at+int64(len(w.pending)) || len(w.pending)+int(n) > walPiece {
		if rc := w.flush(tls, file); rc != lib.SQLITE_OK {
			return rc
		}
	}
	if len(w.pending) == 0 {
		w.at = at
	}
	b := unsafe.Slice(pointer[byte](from), n)
	w.pending = append(w.pending, b...)
	if n == frameHeader {
		w.ends = binary.BigEndian.Uint32(b[pagesAt:]) != 0
	} else if w.ends {
		return w.flush(tls, file)
	}
	return lib.SQLITE_OK
}

// flush writes what is pending. After an error SQLite gives the transaction up,
// and with it what was pending.
func (w *wal) flush(tls *libc.TLS, file uintptr) int32 {
	b := w.pending
	if len(b) == 0 {
		return lib.SQLITE_OK
	}
	w.pending = b[:0]
	return as[func(*libc.TLS, uintptr, uintptr, int32, int64) int32](plain.FxWrite)(tls, file, address(&b[0]), int32(len(b)), w.at)
}

func readLog(tls *libc.TLS, file, to uintptr, n int32, at int64) int32 {
	if rc := logAt(file).flush(tls, file); rc != lib.SQLITE_OK {
		return rc
	}
	return as[func(*libc.TLS, uintptr, uintptr, int32, int64) int32](plain.FxRead)(tls, file, to, n, at)
}

func syncLog(tls *libc.TLS, file uintptr, flags int32) int32 {
	if rc := logAt(file).flush(tls, file); rc != lib.SQLITE_OK {
		return rc
	}
	return as[func(*libc.TLS, uintptr, int32) int32](plain.FxSync)(tls, file, flags)
}

func truncateLog(tls *libc.TLS, file uintptr, size int64) int32 {
	if rc := logAt(file).flush(tls, file); rc != lib.SQLITE_OK {
		return rc
	}
	return as[func(*libc.TLS, uintptr, int64) int32](plain.FxTruncate)(tls, file, size)
}

func sizeOfLog(tls *libc.TLS, file, size uintptr) int32 {
	if rc := logAt(file).flush(tls, file); rc != lib.SQLITE_OK {
		return rc
	}
	return as[func(*libc.TLS, uintptr, uintptr) int32](plain.FxFileSize)(tls, file, size)
}

// closeLog closes a log. What may be pending belongs to no transaction that
// ended.
func closeLog(tls *libc.TLS, file uintptr) int32 {
	logs.Delete(file)
	return as[func(*libc.TLS, uintptr) int32](plain.FxClose)(tls, file)
}

// SQLite here is C turned into Go: an address is a uintptr, and a function is
// the address of Go's function value. Both point to what never moves: memory of
// SQLite's own, variables and functions of a package.

func pointer[T any](at uintptr) *T { return *(**T)(unsafe.Pointer(&at)) }

func address[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

func function[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

func as[F any](at uintptr) F { return *(*F)(unsafe.Pointer(&at)) }

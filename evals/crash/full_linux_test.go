package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const (
	// diskSize is the size of the disk that fills up, in the form of mount.
	diskSize = "size=8m"
	// room is what is left on it for refunds.
	room = 256 << 10
	// fullBatch is how many refunds are in flight when the disk fills up.
	fullBatch = 64
	// maxFullBatches bounds how many of them the room can hold.
	maxFullBatches = 100
)

// TestDiskFull refunds until the disk is full: the answer is a fault, what was
// acknowledged stays and nothing else is there, the server lives on, and it
// works again when there is space.
func TestDiskFull(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("NOT ROOT, NOTHING WAS TESTED: a disk of its own, to fill up, takes root to mount")
	}
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, diskSize); err != nil {
		t.Skipf("NO DISK TO FILL, NOTHING WAS TESTED: mounting a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	l := inFile(realPrograms(t), filepath.Join(disk, "ledger.db"))
	b, err := openBook(t.Context(), l, 1, "USD", "EUR")
	if err != nil {
		t.Fatal(err)
	}
	c := mustServe(t, l)
	refund := func(away bool) {
		t.Helper()
		err := each(make([]struct{}, fullBatch), fullBatch, func(i int, _ struct{}) error {
			b.mu.Lock()
			r := b.add(b.customers[i%2], fmt.Sprintf("full-%d", len(b.refunds)), 1)
			b.mu.Unlock()
			_, err := b.refund(t.Context(), c, r, &b.acknowledged, away)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	refund(false)
	ballast := fill(t, disk, room)
	for n := 0; b.faults == 0; n++ {
		if n == maxFullBatches {
			t.Fatalf("the disk is not full after %d refunds", b.acknowledged)
		}
		refund(true)
	}
	refund(true) // it stays full
	if !c.running() {
		t.Fatal("the server has ended: ", c.log.String())
	}
	t.Logf("%d acknowledged, %d told to try again", b.acknowledged, b.faults)

	if !strings.Contains(c.log.String(), "disk is full") {
		t.Error("the log does not say that the disk is full")
	}

	// What can be read is read, on the full disk too.
	if err := c.ask(t.Context(), "get_customer_record", `{"customer_id":"CUST-00001"}`, &struct{}{}); err != nil {
		t.Error(err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	refund(false)
	if err := errors.Join(b.compare(t.Context(), c, b.refunds), c.close()); err != nil {
		t.Fatal(err)
	}
	fresh := mustServe(t, l)
	if err := errors.Join(b.recompare(t.Context(), l, fresh), fresh.close()); err != nil {
		t.Fatal(err)
	}
	mustBeClean(t, &b.findings)
}

// fill writes a file that leaves so much room on the disk.
func fill(t *testing.T, disk string, room int64) (ballast string) {
	t.Helper()
	var s syscall.Statfs_t
	if err := syscall.Statfs(disk, &s); err != nil {
		t.Fatal(err)
	}
	ballast = filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, int64(s.Bavail)*s.Bsize-room), 0o600); err != nil {
		t.Fatal(err)
	}
	return ballast
}

// TestReadOnlyFile: a ledger that can not be written is refused at the start.
func TestReadOnlyFile(t *testing.T) {
	folder := t.TempDir()
	protect := func() error {
		return errors.Join(os.Chmod(filepath.Join(folder, "ledger.db"), 0o400), os.Chmod(folder, 0o500))
	}
	if os.Getuid() == 0 { // permissions do not bind
		if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, diskSize); err != nil {
			t.Skipf("NO READ-ONLY DISK, NOTHING WAS TESTED: mounting a tmpfs: %v", err)
		}
		t.Cleanup(func() {
			if err := syscall.Unmount(folder, 0); err != nil {
				t.Error(err)
			}
		})
		protect = func() error { return syscall.Mount("", folder, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, "") }
	}
	l := inFile(realPrograms(t), filepath.Join(folder, "ledger.db"))
	if _, err := l.operate(t.Context(), "", "seed"); err != nil {
		t.Fatal(err)
	}
	if err := protect(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(folder, 0o700) }) // to be removed; a disk that is read-only stays so
	// SQLite tells a file that can not be written from a disk that can not.
	if said := refusesToStart(t, l); !strings.Contains(said, "can not be written") && !strings.Contains(said, "may this program write to it?") {
		t.Errorf("the server said %s, want that it can not write", said)
	}
}

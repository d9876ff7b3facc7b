package namespaces

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

func layout(t testing.TB, text string) snowflake.Layout {
	t.Helper()
	l, err := ParseLayout(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestANamespaceChangesOnlyInWaysThatCannotRepeatIDs(t *testing.T) {
	const base = "time:40,worker:8,sequence:12;epoch=1700000000000"
	start := directory{Format: format}
	start, _, err := start.put(Namespace{Name: "orders", Alias: 5, Layout: layout(t, base)}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if start, _, err = start.put(Namespace{Name: "plain", Layout: layout(t, base)}, 0); err != nil {
		t.Fatal(err)
	}
	for what, row := range map[string]struct {
		ns      Namespace
		version uint64
		want    error
	}{
		"other policies":       {Namespace{Name: "orders", Alias: 5, Layout: layout(t, base+";overflow=borrow")}, 1, nil},
		"more time":            {Namespace{Name: "orders", Alias: 5, Layout: layout(t, "time:43,worker:8,sequence:12;epoch=1700000000000")}, 1, nil},
		"a datacenter on top":  {Namespace{Name: "orders", Alias: 5, Layout: layout(t, "datacenter:3,time:40,worker:8,sequence:12;epoch=1700000000000")}, 1, nil},
		"a first alias":        {Namespace{Name: "plain", Alias: 6, Layout: layout(t, base)}, 1, nil},
		"a new namespace":      {Namespace{Name: "users", Layout: layout(t, "leaf")}, 0, nil},
		"another epoch":        {Namespace{Name: "orders", Alias: 5, Layout: layout(t, "time:40,worker:8,sequence:12;epoch=1700000000001")}, 1, seq.ErrUnsafeChange},
		"another split":        {Namespace{Name: "orders", Alias: 5, Layout: layout(t, "time:40,worker:9,sequence:11;epoch=1700000000000")}, 1, seq.ErrUnsafeChange},
		"another unit":         {Namespace{Name: "orders", Alias: 5, Layout: layout(t, base+";unit=10ms")}, 1, seq.ErrUnsafeChange},
		"another alias":        {Namespace{Name: "orders", Alias: 6, Layout: layout(t, base)}, 1, seq.ErrUnsafeChange},
		"no alias any more":    {Namespace{Name: "orders", Layout: layout(t, base)}, 1, seq.ErrUnsafeChange},
		"an alias of another":  {Namespace{Name: "plain", Alias: 5, Layout: layout(t, base)}, 1, seq.ErrUnsafeChange},
		"an old version":       {Namespace{Name: "orders", Alias: 5, Layout: layout(t, base)}, 0, seq.ErrConflict},
		"a version not there":  {Namespace{Name: "users", Layout: layout(t, base)}, 1, seq.ErrConflict},
		"a name of digits":     {Namespace{Name: "7", Layout: layout(t, base)}, 0, seq.ErrBadArgument},
		"a name with a slash":  {Namespace{Name: "a/b", Layout: layout(t, base)}, 0, seq.ErrBadArgument},
		"a name in capitals":   {Namespace{Name: "Orders", Layout: layout(t, base)}, 0, seq.ErrBadArgument},
		"a layout of no bits":  {Namespace{Name: "users"}, 0, seq.ErrBadLayout},
		"an offer's name":      {Namespace{Name: "default", Layout: layout(t, "leaf")}, 0, nil},
		"an offer's own alias": {Namespace{Name: "mine", Alias: 1, Layout: layout(t, "leaf")}, 0, nil},
	} {
		next, got, err := start.put(row.ns, row.version)
		if !errors.Is(err, row.want) {
			t.Errorf("%s: got %v, want %v", what, err, row.want)
			continue
		}
		if err == nil {
			row.ns.Version = row.version + 1
			if found, _ := next.find(row.ns.Name); found != row.ns || got != row.ns {
				t.Errorf("%s: got %+v, want %+v", what, found, row.ns)
			}
		}
		if len(start.Namespaces) != 2 || start.Namespaces[0].Version != 1 {
			t.Fatalf("%s: changed the directory before: %+v", what, start)
		}
	}
}

func TestWhatIsRecordedGoesBeforeWhatIsOffered(t *testing.T) {
	d, _, err := directory{Format: format}.put(Namespace{Name: "mine", Alias: 1, Layout: layout(t, "leaf")}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, ns := range d.all(defaults()) {
		got = append(got, ns.Name)
	}
	if diff := cmp.Diff([]string{"default", "mine", "regional-2"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestADirectoryComesBackFromItsText(t *testing.T) {
	d, _, err := directory{Format: format}.put(Namespace{Name: "mine", Alias: 9, Layout: layout(t, "leaf")}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if d, _, err = d.bind(Datacenter{ID: 3, Name: "sg"}); err != nil {
		t.Fatal(err)
	}
	body, err := d.encode()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"format":1,"namespaces":[{"name":"mine","alias":9,` +
		`"layout":"time:41,worker:10,sequence:12;unit=1ms;epoch=1288834974657;rollback=wait:5ms","version":1}],` +
		`"datacenters":[{"id":3,"name":"sg"}]}`
	if string(body) != want {
		t.Errorf("got %s, want %s", body, want)
	}
	back, err := parseDirectory(body)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := back.encode(); string(again) != want {
		t.Errorf("got %s, want %s", again, want)
	}
}

func TestADirectoryThatIsNotUnderstoodIsNotUsed(t *testing.T) {
	for _, body := range []string{`{`, `{"format":2}`, `{"format":1,"rules":[]}`, `{"format":1,"namespaces":[{"name":"a","layout":"x"}]}`, `[]`} {
		if _, err := parseDirectory([]byte(body)); !errors.Is(err, ErrBadDirectory) {
			t.Errorf("%s: got %v, want %v", body, err, ErrBadDirectory)
		}
	}
	if d, err := parseDirectory(nil); err != nil || d.Format != format {
		t.Errorf("a document never written: got %+v, %v", d, err)
	}
}

func TestADatacenterIDAndItsNameBelongTogether(t *testing.T) {
	d := directory{Format: format}
	for k, row := range []struct {
		dc      Datacenter
		changed bool
		want    error
	}{
		{Datacenter{0, ""}, true, nil},
		{Datacenter{0, ""}, false, nil},
		{Datacenter{0, "cn"}, true, nil}, // the id gets its name
		{Datacenter{0, "cn"}, false, nil},
		{Datacenter{0, ""}, false, seq.ErrDatacenterTaken},
		{Datacenter{0, "sg"}, false, seq.ErrDatacenterTaken},
		{Datacenter{1, "cn"}, false, seq.ErrDatacenterTaken},
		{Datacenter{1, "sg"}, true, nil},
		{Datacenter{2, ""}, true, nil},
	} {
		next, changed, err := d.bind(row.dc)
		if changed != row.changed || !errors.Is(err, row.want) {
			t.Errorf("%d: got changed %v and %v, want %v and %v", k, changed, err, row.changed, row.want)
		}
		d = next
	}
	if got := d.NameOf(1); got != "sg" {
		t.Errorf("got %q, want sg", got)
	}
}

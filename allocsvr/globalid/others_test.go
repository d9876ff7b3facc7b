package globalid

import (
	"testing"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

func TestIDsOfOthersAreDecodedOverTheWire(t *testing.T) {
	client := newCluster(t).start("a").dial()
	for _, row := range []struct {
		text, encoding, layout string
		want                   *pb.SnowflakeDecoded
	}{
		{"18446744073709551615", "", "instagram", &pb.SnowflakeDecoded{Id: -1, Layout: "instagram", Text: "18446744073709551615", WorkerId: 8191, Sequence: 1023}},
		{"FFFFFFFFFFFFFFFF", "hex", "instagram", &pb.SnowflakeDecoded{Id: -1, Layout: "instagram", Text: "18446744073709551615", WorkerId: 8191, Sequence: 1023}},
		{"017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "", "", &pb.SnowflakeDecoded{Layout: "uuid-v7", Text: "017f22e2-79b0-7cc3-98c4-dc0c0c07398f", UnixMs: 1645557742000}},
		{"01ARZ3NDEKTSV4RRFFQ69G5FAV", "", "ulid", &pb.SnowflakeDecoded{Layout: "ulid", Text: "01ARZ3NDEKTSV4RRFFQ69G5FAV", UnixMs: 1469922850259}},
		{"507f1f77bcf86cd799439011", "", "", &pb.SnowflakeDecoded{Layout: "objectid", Text: "507f1f77bcf86cd799439011", UnixMs: 1350508407000, Origin: "bcf86cd799", Sequence: 4427793}},
	} {
		got, err := client.Decode(long(t), &pb.SnowflakeDecodeRequest{Id: &pb.SnowflakeDecodeRequest_Text{Text: row.text}, Encoding: row.encoding, Layout: row.layout})
		if err != nil || got.Id != row.want.Id || got.Layout != row.want.Layout || got.Text != row.want.Text || got.Origin != row.want.Origin ||
			got.WorkerId != row.want.WorkerId || got.Sequence != row.want.Sequence || row.want.UnixMs != 0 && got.UnixMs != row.want.UnixMs {
			t.Errorf("%s: got %v, %v, want %v", row.text, got, err, row.want)
		}
	}
	reply, err := client.Layouts(long(t), &pb.SnowflakeLayoutsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range reply.Layouts {
		if l.ReadOnly {
			t.Errorf("%s is listed and makes nothing", l.Name)
		}
	}
}

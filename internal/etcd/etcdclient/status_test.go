package etcdclient

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// tells is an etcd that tells what it is given. That of Debian asks no user for it.
type tells struct {
	pb.UnimplementedMaintenanceServer
	pb.UnimplementedClusterServer
	pb.UnimplementedAuthServer
	status  *pb.StatusResponse
	members []*pb.Member
	refuses error         // those who have no token
	slow    chan struct{} // logins wait until it is closed; if nil, they do not wait
	logins  atomic.Int32
}

func (s *tells) Status(ctx context.Context, _ *pb.StatusRequest) (*pb.StatusResponse, error) {
	if md, _ := metadata.FromIncomingContext(ctx); s.refuses != nil && !slices.Equal(md.Get("token"), []string{"t"}) {
		return nil, s.refuses
	}
	return s.status, nil
}

func (s *tells) MemberList(context.Context, *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	return &pb.MemberListResponse{Members: s.members}, nil
}

func (s *tells) Authenticate(context.Context, *pb.AuthenticateRequest) (*pb.AuthenticateResponse, error) {
	s.logins.Add(1)
	if s.slow != nil {
		<-s.slow
	}
	return &pb.AuthenticateResponse{Token: "t"}, nil
}

// listen serves it, and gives its address.
func (s *tells) listen(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterMaintenanceServer(server, s)
	pb.RegisterClusterServer(server, s)
	pb.RegisterAuthServer(server, s)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return l.Addr().String()
}

func dial(t *testing.T, cfg Config) *Client {
	t.Helper()
	c, err := Dial(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestStatusKnowsTheMembersThatDoNotAnswerByWhatTheOthersTell(t *testing.T) {
	down := "127.0.0.1:1" // nothing listens there
	up := (&tells{
		status: &pb.StatusResponse{Header: &pb.ResponseHeader{ClusterId: 9, MemberId: 1, Revision: 77}, Version: "3.6.12", Leader: 1, RaftTerm: 4,
			DbSize: 300, DbSizeInUse: 200, DbSizeQuota: 1000,
			Errors: []string{"memberID:2 alarm:NOSPACE ", "memberID:2  alarm:NOSPACE", "memberID:44 alarm:CORRUPT", "disk is slow"}},
		members: []*pb.Member{{ID: 1, Name: "a"}, {ID: 2, Name: "b", ClientURLs: []string{"http://" + down}},
			{ID: 3, Name: "c", ClientURLs: []string{"https://10.9.8.7:2379"}, IsLearner: true}},
	}).listen(t)
	got := dial(t, Config{Endpoints: []string{up, down}}).Status(t.Context())
	if len(got) != 3 {
		t.Fatalf("got %+v, want three members", got)
	}
	a, b, c := got[0], got[1], got[2]
	if a.Name != "a" || a.Addr != up || a.Err != nil || !a.Leads() || a.Term != 4 || a.Revision != 77 || a.Size != 300 || a.InUse != 200 || a.Quota != 1000 || a.Version != "3.6.12" {
		t.Errorf("the one that answers is %+v", a)
	}
	if !slices.Equal(a.Alarms, []string{"CORRUPT"}) || !slices.Equal(a.Errors, []string{"disk is slow"}) {
		t.Errorf("got alarms %q and errors %q, want that of a member that none knows with the one that told it", a.Alarms, a.Errors)
	}
	if b.Name != "b" || b.Addr != down || !errors.Is(b.Err, ErrUnreachable) || b.Leads() || !slices.Equal(b.Alarms, []string{"NOSPACE"}) {
		t.Errorf("the one that is down is %+v", b)
	}
	if c.Name != "c" || c.Addr != "10.9.8.7:2379" || !errors.Is(c.Err, ErrUnasked) || !c.Learner {
		t.Errorf("the one without an endpoint is %+v", c)
	}
	if err := sound(got, Requirement{}); !errors.Is(err, ErrAlarm) {
		t.Errorf("it is found sound (%v) with an alarm of one that is down, want %v", err, ErrAlarm)
	}
}

func TestAMemberThatDoesNotAnswerIsUnreachableWithinABound(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // it takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := dial(t, Config{Endpoints: []string{l.Addr().String()}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if m := c.Status(ctx)[0]; !errors.Is(m.Err, ErrUnreachable) || ctx.Err() != nil {
		t.Errorf("got %+v, want %v", m, ErrUnreachable)
	}
}

func TestStatusLogsInOnlyWhereEtcdWantsIt(t *testing.T) {
	for name, row := range map[string]struct {
		refuses error
		user    string
		logins  int
		want    error
	}{
		"it tells everybody":                {nil, "seq", 0, nil},
		"it tells users":                    {status.Error(codes.InvalidArgument, "etcdserver: user name is empty"), "seq", 1, nil},
		"it tells users, and there is none": {status.Error(codes.InvalidArgument, "etcdserver: user name is empty"), "", 0, ErrLogin},
		"it tells root":                     {status.Error(codes.PermissionDenied, "etcdserver: permission denied"), "", 0, ErrPermission},
	} {
		etcd := &tells{status: &pb.StatusResponse{Header: &pb.ResponseHeader{MemberId: 1}, Leader: 1, Version: "3.6.5"}, refuses: row.refuses}
		c := dial(t, Config{Endpoints: []string{etcd.listen(t)}, User: row.user, Password: "p"})
		if m := c.Status(t.Context())[0]; !errors.Is(m.Err, row.want) || row.want == nil && m.Err != nil || int(etcd.logins.Load()) != row.logins {
			t.Errorf("%s: got %v after %d logins, want %v after %d", name, m.Err, etcd.logins.Load(), row.want, row.logins)
		}
	}
}
